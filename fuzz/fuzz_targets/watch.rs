#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| training_job_fuzz_targets::watch::check(bytes));
libfuzzer_sys::fuzz_mutator!(|bytes: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutation::responses(bytes, size, max_size, seed)
});
