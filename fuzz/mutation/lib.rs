//! Mutations that keep YAML and JSON valid. They are half of all mutations, and the others are libFuzzer's own.

mod random;
mod tree;

use libfuzzer_sys::fuzzer_mutate;
use random::Random;
use serde_json::Value;

/// Mutates a manifest. It loses comments and anchors, which libFuzzer's own mutations keep.
pub fn manifest(bytes: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    change(bytes, size, max_size, seed, |bytes, random| {
        let text = std::str::from_utf8(bytes).ok()?;
        let mut documents = training_review::fuzzing::read(text).ok()?;
        tree::change(&mut documents, random);
        let texts = documents.iter().map(|document| {
            let line = || Some(document.to_string());
            match random.below(4) {
                0 => line(),
                _ => training_review::fuzzing::print(std::slice::from_ref(document)).ok(),
            }
        });
        Some(texts.collect::<Option<Vec<_>>>()?.join("\n---\n").into_bytes())
    })
}

/// Mutates a sequence of JSON values.
pub fn values(bytes: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    change(bytes, size, max_size, seed, |bytes, random| {
        let values = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>();
        let mut values: Vec<Value> = values.map_while(Result::ok).collect();
        tree::change(&mut values, random);
        let lines: Vec<String> = values.iter().map(Value::to_string).collect();
        Some(lines.join("\n").into_bytes())
    })
}

/// Mutates a script of responses. Each line of it is JSON or starts a response. Lines are also swapped, copied and
/// removed.
pub fn responses(bytes: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    change(bytes, size, max_size, seed, |bytes, random| {
        let mut lines: Vec<Vec<u8>> = bytes.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        let (one, other) = (random.below(lines.len()), random.below(lines.len()));
        match random.below(8) {
            0 => lines.swap(one, other),
            1 => lines.insert(one, lines[other].clone()),
            2 => drop(lines.remove(one)),
            3 => {
                const HEADS: [&str; 8] = [
                    "> pods 200 end 7",
                    "> pods 410 end",
                    "> pods 200 hang 50",
                    "> pods 500 break 3",
                    "> mxjobs 200 end",
                    "> mxjobs 200 break 9",
                    "> services 200 end",
                    "> services 410 end",
                ];
                lines.insert(one, HEADS[random.below(HEADS.len())].into());
            }
            _ => {
                let mut values: Vec<Value> = lines
                    .iter()
                    .map(|line| serde_json::from_slice(line).unwrap_or_default())
                    .collect();
                let found: Vec<usize> = (0..values.len()).filter(|n| values[*n].is_object()).collect();
                let chosen = *found.get(random.below(found.len()))?;
                let mut some = vec![values.swap_remove(chosen)];
                tree::change(&mut some, random);
                lines[chosen] = some.first()?.to_string().into_bytes();
            }
        }
        Some(lines.join(&b'\n'))
    })
}

fn change(
    bytes: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    how: impl FnOnce(&[u8], &mut Random) -> Option<Vec<u8>>,
) -> usize {
    let mut random = Random::new(seed);
    if random.below(2) == 0
        && let Some(changed) = how(&bytes[..size], &mut random)
        && changed.len() <= max_size
        && !changed.is_empty()
    {
        bytes[..changed.len()].copy_from_slice(&changed);
        return changed.len();
    }
    fuzzer_mutate(bytes, size, max_size)
}
