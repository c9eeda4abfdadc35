// Opens the pages of `kubectl training ui` in headless Chromium while a job runs and fails. Fails if axe-core finds
// anything, a page loads anything from elsewhere or has an error, a head of a table breaks in a word, or a page does not
// change by itself. Writes pictures of the list and of the job's page if a directory for them is given.
//
// usage: node live.js ADDRESS KIND NAME [DIRECTORY-OF-PICTURES]
//
// The browser is $CHROMIUM, or the first of chromium, chromium-headless-shell and google-chrome in PATH.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import puppeteer from "puppeteer-core";
import { brokenHeads } from "./heads.js";

const [address, kind, name, pictures] = process.argv.slice(2);
if (!name) {
  console.error("usage: node live.js ADDRESS KIND NAME [DIRECTORY-OF-PICTURES]");
  process.exit(2);
}
const find = "command -v chromium || command -v chromium-headless-shell || command -v google-chrome";
const executablePath = process.env.CHROMIUM || execFileSync("sh", ["-c", find], { encoding: "utf8" }).trim();
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const origin = new URL(address).origin;
const browser = await puppeteer.launch({ executablePath, args: ["--no-sandbox"], headless: "shell" });
let failed = false;
const fail = (text) => {
  failed = true;
  console.error(text);
};

async function check(page, title) {
  for (const fault of await brokenHeads(page)) fail(`${title}: ${fault}`);
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    // The policy of the page forbids scripts in it, but not those of the debugger.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run());
    for (const { id, help, nodes } of violations) fail(`${title} (${value}): ${id}: ${help}: ${nodes[0].html}`);
  }
}

async function picture(page, name, height) {
  if (!pictures) return;
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  await page.setViewport({ width: 1000, height });
  await page.screenshot({ path: join(pictures, name) });
}

try {
  const page = await browser.newPage();
  page.on("console", (message) => message.type() === "error" && fail(`console: ${message.text()}`));
  page.on("pageerror", (error) => fail(error.message));
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${origin}/`) && !url.startsWith("data:")) fail(`loads ${url}`);
  });
  await page.goto(address);
  if (page.url() !== `${origin}/`) fail(`the token is still in the address: ${page.url()}`);
  const timeout = 60_000;
  const link = `a[href="/job/default/${kind}/${name}"]`;
  await page.waitForSelector(link, { timeout });
  await check(page, "list");

  await page.goto(await page.$eval(link, (element) => element.href));
  await page.waitForSelector("#spec");
  await page.evaluate(() => {
    window.isSamePage = true;
    document.querySelector("#timeline ~ details, details").open = true;
    document.querySelector("nav a").focus();
  });
  await page.waitForFunction((title) => document.title === title, { timeout }, `${kind} ${name}: Failed`);
  const kept = await page.evaluate(() => ({
    page: window.isSamePage === true,
    open: document.querySelectorAll("details[open]").length > 0,
    focus: document.activeElement.localName === "a",
  }));
  for (const [what, is] of Object.entries(kept)) if (!is) fail(`the change lost: ${what}`);
  await check(page, "story");

  await page.goto(`${origin}/`);
  await page.waitForSelector(".state.Succeeded", { timeout });
  await picture(page, "ui-list.png", 360);
  await page.goto(`${origin}/job/default/MXJob/spirals`);
  await picture(page, "ui-story.png", 1200);

  const plain = await browser.newPage();
  await plain.setJavaScriptEnabled(false);
  await plain.goto(`${origin}/`);
  await plain.select("select[name=state]", "Failed");
  await Promise.all([plain.waitForNavigation(), plain.click("form button")]);
  if (!plain.url().includes("state=Failed") || !(await plain.$(link))) fail(`the filter without script: ${plain.url()}`);
  const missing = await plain.goto(`${origin}/job/default/${kind}/none`);
  if (missing.status() !== 404) fail(`a missing job: ${missing.status()}`);
} finally {
  await browser.close();
}
if (failed) process.exit(1);
console.log("live pages: nothing found");
