// node look.js REPORT.html CHROMIUM [FOLDER for screenshots]: what a browser and axe-core say of a report, as JSON.
const path = require("node:path");
const puppeteer = require("puppeteer-core");

const [file, chromium, shots] = process.argv.slice(2);
const views = [1280, 390].flatMap((width) => ["light", "dark"].map((scheme) => ({ width, scheme })));

async function look(browser, { width, scheme }) {
  const page = await browser.newPage();
  const said = [], requests = [];
  page.on("console", (message) => said.push(message.text()));
  page.on("pageerror", (error) => said.push(String(error)));
  page.on("dialog", (dialog) => { said.push("dialog " + dialog.message()); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data):/.test(request.url())) requests.push(request.url()); });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  const start = Date.now();
  await page.goto("file://" + path.resolve(file), { waitUntil: "load" });
  const open_ms = Date.now() - start;
  const found = await page.evaluate(() => ({
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    overlaps: overlapping(),
    scripts: document.querySelectorAll("script, img, iframe, object, form").length,
    unwrapped: unwrapped("pre.digest"),
    sideways: [...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth).length,
  }), await page.evaluate(() => { window.unwrapped = (which) => [...document.querySelectorAll(which)]
      .filter((each) => each.scrollWidth > each.clientWidth || each.scrollHeight > each.clientHeight).length;
    window.overlapping = () => {
    const hits = [];
    for (const chart of document.querySelectorAll("svg")) {
      const texts = [...chart.querySelectorAll("text")].map((t) => [t.textContent, t.getBoundingClientRect()]).filter(([, b]) => b.width);
      texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
        const w = Math.min(p.right, q.right) - Math.max(p.left, q.left), h = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
        if (w > 2 && h > 4) hits.push(`${a} / ${b}`);
      }));
      const frame = chart.getBoundingClientRect();
      for (const [t, b] of texts) if (b.right > frame.right + 2 || b.left < frame.left - 2) hits.push(`${t} leaves the chart`);
    }
    return hits;
  }; }));
  if (shots) await page.screenshot({ path: path.join(shots, `report-${width}-${scheme}.png`), fullPage: true });
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  await page.emulateMediaType("print"); // on paper nothing scrolls
  found.cut_in_print = await page.evaluate(() => unwrapped("pre"));
  await page.close();
  return { width, scheme, open_ms, said, requests, ...found };
}

async function axe(browser, { width, scheme }) {
  const page = await browser.newPage();
  await page.setBypassCSP(true); // for axe only: the report itself lets no script run
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport({ width, height: 900 });
  await page.goto("file://" + path.resolve(file), { waitUntil: "load" });
  await page.evaluate(() => document.querySelectorAll("details").forEach((each) => { each.open = true; }));
  await page.addScriptTag({ path: require.resolve("axe-core/axe.min.js") });
  const result = await page.evaluate(() => axe.run());
  await page.close();
  return result.violations.map((v) => `${v.id}: ${v.nodes.slice(0, 3).map((n) => n.target.join(" ")).join("; ")}`);
}

(async () => {
  const browser = await puppeteer.launch({ executablePath: chromium, args: ["--no-sandbox"] });
  const seen = [];
  for (const view of views) seen.push({ ...(await look(browser, view)), violations: await axe(browser, view) });
  await browser.close();
  process.stdout.write(JSON.stringify(seen, null, 1) + "\n");
})();
