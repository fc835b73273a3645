package browsertest

import (
	"crypto/sha256"
	"encoding/base64"
)

// digest names a script in a Content-Security-Policy.
func digest(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// accessScript reports in the page's title. Contrast is that of WCAG 2.1, 1.4.3: relative luminance
// of the text's colour and of the first opaque ground behind it.
const accessScript = `
const rgb = s => (s.match(/[\d.]+/g) || []).map(Number);
const lum = c => { const [r, g, b] = c.slice(0, 3).map(v => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c.length === 3 || c[3] > 0.99) return c; } return [255, 255, 255]; };
const problems = [];
let checked = 0;
for (const d of document.querySelectorAll("details")) d.open = true;
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const seen = new Set();
while (walker.nextNode()) {
  const e = walker.currentNode.parentElement;
  if (!walker.currentNode.textContent.trim() || seen.has(e) || e.closest("script,style,title,desc,.skip,caption")) continue;
  seen.add(e); checked++;
  const style = getComputedStyle(e);
  const ink = rgb(e instanceof SVGElement ? style.fill : style.color);
  const a = lum(ink), b = lum(ground(e));
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (!(ratio >= 4.5)) problems.push("contrast " + ratio.toFixed(2) + " of " + e.className.toString() + " " + e.tagName);
}
for (const p of document.querySelectorAll(".line,.dot,.point,.limit,.f1,.f2,.f3,.f4")) {
  const style = getComputedStyle(p), c = style.fill === "none" ? style.stroke : (p.matches(".limit") ? style.stroke : style.fill);
  const a = lum(rgb(c)), b = lum(ground(p.closest("svg")));
  checked++;
  if ((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) < 3) problems.push("graphic contrast of " + p.getAttribute("class"));
}
for (const s of document.querySelectorAll("svg")) {
  const label = s.getAttribute("aria-labelledby");
  if (s.getAttribute("aria-hidden") !== "true" && !(label && label.split(" ").every(id => document.getElementById(id)))) problems.push("a drawing without a name");
}
for (const t of document.querySelectorAll("table")) {
  const by = t.getAttribute("aria-labelledby");
  if (!t.caption && !(by && document.getElementById(by))) problems.push("a table without a name");
  for (const th of t.querySelectorAll("th")) if (!th.scope) problems.push("a heading cell without a scope");
}
for (const a of document.querySelectorAll("a[href^='#']")) if (!document.getElementById(a.hash.slice(1))) problems.push("a link to nothing");
const ids = [...document.querySelectorAll("[id]")].map(e => e.id);
if (new Set(ids).size !== ids.length) problems.push("an id twice");
let level = 0;
for (const h of document.querySelectorAll("h1,h2,h3")) { const n = Number(h.tagName[1]); if (n > level + 1) problems.push("heading level skipped"); level = n; }
if (!document.querySelector("main") || !document.querySelector("header") || !document.querySelector("nav[aria-label]") || !document.documentElement.lang) problems.push("a landmark is missing");
if (document.documentElement.scrollWidth > document.documentElement.clientWidth) problems.push("the page is wider than its window: " + document.documentElement.scrollWidth);
document.title = "checked " + checked + " things; problems: " + ([...new Set(problems)].join(", ") || "none");
`
