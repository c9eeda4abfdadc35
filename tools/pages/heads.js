// Returns the heads of tables that break in a word, at each width of the window from 360 to 900 px.
export async function brokenHeads(page) {
  const broken = [];
  const size = page.viewport();
  for (let width = 360; width <= 900; width += 60) {
    await page.setViewport({ width, height: 900 });
    const words = await page.evaluate(wordsInPieces);
    broken.push(...words.map((word) => `a head of a table breaks in the word "${word}" at ${width} px`));
  }
  await page.setViewport(size);
  return broken;
}

function wordsInPieces() {
  const range = document.createRange();
  const words = [];
  for (const head of document.querySelectorAll("th")) {
    const texts = document.createTreeWalker(head, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      for (const { 0: word, index } of text.data.matchAll(/[\p{L}\p{N}]+/gu)) {
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
        if (lines.size > 1) words.push(word);
      }
    }
  }
  return words;
}
