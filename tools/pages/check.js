// Opens pages in headless Chromium, in light and dark, and checks them with axe-core. Fails if axe-core finds anything,
// a page loads anything, a page has an error, a head of a table breaks in a word, or its print hides or cuts content or is
// dark. Writes pictures if a directory for them is given.
//
// usage: node check.js DIRECTORY-OF-PAGES [DIRECTORY-OF-PICTURES NAME...]
//
// The browser is $CHROMIUM, or the first of chromium, chromium-headless-shell and google-chrome in PATH.
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import puppeteer from "puppeteer-core";
import { brokenHeads } from "./heads.js";

const [pages, pictures, ...pictured] = process.argv.slice(2);
if (!pages) {
  console.error("usage: node check.js DIRECTORY-OF-PAGES [DIRECTORY-OF-PICTURES NAME...]");
  process.exit(2);
}

function browserPath() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  for (const name of ["chromium", "chromium-headless-shell", "google-chrome"]) {
    try {
      return execFileSync("which", [name], { encoding: "utf8" }).trim();
    } catch {
      // The next one is tried.
    }
  }
  console.error("no browser: install Debian's package chromium, or set CHROMIUM to the program");
  process.exit(2);
}

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const files = readdirSync(pages).filter((name) => name.endsWith(".html"));
if (files.length === 0) {
  console.error(`${pages}: no pages`);
  process.exit(2);
}
const browser = await puppeteer.launch({ executablePath: browserPath(), args: ["--no-sandbox"], headless: "shell" });
let failed = false;
const fail = (text) => {
  failed = true;
  console.error(text);
};

// The width of A4 paper less margins of 10 mm, in CSS pixels.
const PAPER_WIDTH = 718;

// Returns what is wrong with the print of a page whose details are closed.
function printFaults() {
  const faults = [];
  const root = document.documentElement;
  const background = getComputedStyle(document.body).backgroundColor;
  if (background !== "rgb(255, 255, 255)") faults.push(`the background is ${background}`);
  if (root.scrollWidth > root.clientWidth) faults.push(`${root.scrollWidth - root.clientWidth} px wider than the paper`);
  for (const details of document.querySelectorAll("details:not([open])")) {
    const summary = details.querySelector("summary");
    const content = [...details.children].filter((child) => child !== summary);
    const isShown = (element) => element.checkVisibility() && element.getBoundingClientRect().height > 0;
    if (!content.every(isShown)) faults.push(`hidden below "${summary.textContent}"`);
  }
  for (const element of document.querySelectorAll("main *")) {
    const cuts = getComputedStyle(element).overflowX !== "visible" && !(element instanceof SVGElement);
    if (cuts && element.scrollWidth > element.clientWidth) faults.push(`cut: ${element.outerHTML.slice(0, 100)}`);
  }
  return faults;
}

async function checkPrint(page, title) {
  await page.emulateMediaType("print");
  await page.setViewport({ width: PAPER_WIDTH, height: 1000 });
  const faults = await page.evaluate(printFaults);
  faults.slice(0, 5).forEach((fault) => fail(`${title}, printed: ${fault}`));
  await page.emulateMediaType(null);
}

for (const file of files) {
  const name = file.replace(/\.html$/, "");
  for (const [scheme, width] of [["light", 1200], ["dark", 1200], ["light", 400]]) {
    const title = `${file} (${scheme}, ${width} px)`;
    const page = await browser.newPage();
    // Scripts of a page that slipped through are blocked by its policy, and would be errors here.
    page.on("console", (message) => message.type() === "error" && fail(`${title}: ${message.text()}`));
    page.on("pageerror", (error) => fail(`${title}: ${error.message}`));
    page.on("dialog", () => fail(`${title}: a dialog`));
    const url = pathToFileURL(resolve(pages, file)).href;
    page.on("request", (request) => request.url() !== url && fail(`${title}: loads ${request.url()}`));
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
    await page.setViewport({ width, height: 900 });
    await page.goto(url);
    const metrics = await page.evaluate(() => {
      const [timing] = performance.getEntriesByType("navigation");
      const root = document.documentElement;
      return { load: Math.round(timing.loadEventEnd), overflow: root.scrollWidth - root.clientWidth };
    });
    if (metrics.overflow > 0) fail(`${title}: ${metrics.overflow} px wider than the window`);
    if (pictures && pictured.includes(name) && width > 400) {
      mkdirSync(pictures, { recursive: true });
      await page.setViewport({ width: 1000, height: 1480 });
      await page.screenshot({ path: join(pictures, `story-${name}-${scheme}.png`) });
      await page.setViewport({ width, height: 900 });
    }
    if (width > 400) {
      await checkPrint(page, title);
      await page.setViewport({ width, height: 900 });
    }
    // All parts are checked, also those in closed details. axe-core takes long for thousands of elements.
    await page.evaluate(() => {
      const all = document.querySelectorAll("details");
      if (all.length < 200) all.forEach((details) => (details.open = true));
    });
    if (width === 400) (await brokenHeads(page)).slice(0, 5).forEach((fault) => fail(`${file}: ${fault}`));
    await page.evaluate(axe);
    const result = await page.evaluate(() => axe.run());
    for (const violation of result.violations) {
      fail(`${title}: ${violation.id}: ${violation.help}`);
      for (const node of violation.nodes.slice(0, 3)) fail(`    ${node.html.slice(0, 200)}`);
    }
    const size = statSync(join(pages, file)).size;
    console.log(`${title}: ${size} bytes, loaded in ${metrics.load} ms, ${result.passes.length} rules of axe-core pass`);
    await page.close();
  }
}
await browser.close();
process.exit(failed ? 1 : 0);
