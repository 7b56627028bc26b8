// Uses the chat page of a running server in a headless browser: node page.mjs BROWSER URL. The package puppeteer-core must be
// installed where this file lies.
import assert from "node:assert/strict";
import puppeteer from "puppeteer-core";

const [browserPath, url] = process.argv.slice(2);
const browser = await puppeteer.launch({ executablePath: browserPath, headless: true, args: ["--no-sandbox"] });
try {
  const page = await browser.newPage();
  const faults = [];
  page.on("pageerror", (e) => faults.push(String(e)));
  page.on("console", (m) => m.type() === "error" && faults.push(m.text()));
  page.on("request", (r) => r.url().startsWith(url) || r.url().startsWith("data:") || faults.push("asks for " + r.url()));
  await page.goto(url + "/", { waitUntil: "networkidle0" });
  assert.equal(await page.$eval("#model", (e) => e.textContent), "tiny");

  const idle = () => page.waitForFunction(() => document.getElementById("send").textContent === "Send");
  const last = () => page.$$eval(".assistant > div:not(.foot)", (all) => all.at(-1).textContent);
  const say = async (text) => {
    await page.type("#input", text);
    await page.keyboard.press("Enter");
  };

  // Settings and a reply that streams.
  await page.click("#open");
  await page.type("#temperature", "0");
  await page.$eval("#temperature", (e) => e.dispatchEvent(new Event("change")));
  await say("What is the capital of France?");
  await page.waitForSelector(".assistant");
  await idle();
  assert.equal(await last(), "The capital of France is Paris.");
  assert.match(await page.$eval(".foot span", (e) => e.textContent), /9 tokens/);

  // The conversation and the settings outlive a reload.
  await page.reload({ waitUntil: "networkidle0" });
  assert.equal(await last(), "The capital of France is Paris.");
  assert.equal(await page.$eval("#temperature", (e) => e.value), "0");

  // Another reply in place of the last.
  await page.click(".foot button:nth-of-type(2)");
  await idle();
  assert.equal((await page.$$(".assistant")).length, 1);
  assert.equal(await last(), "The capital of France is Paris.");

  // Markup in messages stays text.
  await page.click("#clear");
  await say("<img src=x onerror=alert(1)>");
  await page.waitForSelector(".assistant");
  await idle();
  assert.equal((await page.$$("main img")).length, 0);

  // Stop, by the button: the reply stays as far as it got.
  await page.click("#clear");
  await page.evaluate(() => {
    const plain = window.fetch;
    window.fetch = (where, init) => {
      if (init?.body) init.body = JSON.stringify({ ...JSON.parse(init.body), ignore_eos: true, max_tokens: 100000 });
      return plain(where, init);
    };
  });
  await say("Tell me a story.");
  await page.waitForFunction(() => document.querySelector(".assistant")?.textContent.length > 20);
  await page.evaluate(() => document.getElementById("send").click());
  await idle();
  assert.ok((await last()).length > 5);

  // What a server refuses is shown.
  await page.click("#clear");
  await page.$eval("#top_p", (e) => (e.value = "7"));
  await say("Hi");
  await page.waitForSelector(".error");
  assert.match(await page.$eval(".error", (e) => e.textContent), /top.p/i);
  assert.equal(await page.$eval("#input", (e) => e.value), "Hi");
  faults.splice(0, faults.length, ...faults.filter((f) => !f.includes("400"))); // that refusal, on the console

  // Dark and light.
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  const dark = await back();
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
  const light = await back();
  assert.notEqual(dark, light);
  await page.click("#theme");
  assert.equal(await back(), dark);
  await page.click("#theme");
  assert.equal(await back(), light);

  if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
  assert.deepEqual(faults, []);
  console.log("the page does what it should");
} finally {
  await browser.close();
}
