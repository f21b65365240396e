// views.mjs CHROMIUM URL MODE [FOLDER]: looks at a dashboard as a user would; see tests/e2e/dashboard.sh for what runs where. FOLDER: screenshots go
// there.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Browser, check, finish } from "./browser.mjs";

const [chromium, url, mode, folder, more] = process.argv.slice(2);
const origin = new URL(url).origin;
const browser = new Browser(chromium);
const page = await browser.page();

async function shots(name, sizes = [[1280, 800, false]]) {
  if (!folder) return;
  for (const [width, height, isDark] of sizes) {
    await page.look(width, height, isDark);
    await page.eval("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve, 400)))");
    await page.shot(join(folder, `dashboard-${name}${width < 500 ? "-narrow" : ""}${isDark ? "-dark" : ""}.png`));
  }
  await page.look(1280, 800, false);
}
/** What the script that runs this one does with the cluster. */
const please = (what) => writeFileSync(join(process.env.REQUESTS, what), "");
const goTo = (place) => page.eval(`location.hash = ${JSON.stringify(`#/${place}`)}`);
const noSideways = () => page.until("document.documentElement.scrollWidth <= document.documentElement.clientWidth");
/** The accessible name of every control. */
const namelessControls = () =>
  page.eval(`[...document.querySelectorAll("button, a, input, select, canvas")].filter((one) => one.getClientRects().length > 0 && !(one.getAttribute("aria-label") || one.innerText?.trim() || one.closest("label")?.innerText.trim() || one.title)).map((one) => one.outerHTML.slice(0, 120)).join("\\n")`);
/** Texts with less than 4.5:1 on their ground, of what can be seen. Controls that are off are exempt. */
const paleTexts = () =>
  page.eval(`(() => {
    const parts = (colour) => { const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number); return colour.startsWith("color(") ? [r * 255, g * 255, b * 255, a] : [r, g, b, a]; };
    const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map((one) => (one /= 255) <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
    const groundOf = (one) => { for (; one; one = one.parentElement) { const colour = parts(getComputedStyle(one).backgroundColor); if (colour[3] > 0.9) return colour; } return [255, 255, 255]; };
    const pale = [];
    for (const one of document.querySelectorAll("body *")) {
      if (![...one.childNodes].some((child) => child.nodeType === 3 && child.data.trim()) || one.closest(".hidden, .skip, :disabled, script, noscript") || !one.checkVisibility()) continue;
      const [a, b] = [light(parts(getComputedStyle(one).color)), light(groundOf(one))].sort((x, y) => y - x);
      if ((a + 0.05) / (b + 0.05) < 4.5) pale.push(one.outerHTML.slice(0, 120) + " " + ((a + 0.05) / (b + 0.05)).toFixed(2));
    }
    return pale.slice(0, 5).join("\\n");
  })()`);
/** No text of the page may become elements. */
const isUnharmed = () => page.eval(`window.harmed === undefined && document.querySelectorAll("img:not([src='/icon.svg']), iframe, object, main script").length === 0`);

const everyView = ["map", "nodes", "pods", "pending", "now", "what-if", "recording", "budgets"];

async function small() {
  await page.go(url);
  await check("the token opens the page, and is gone from the address", async () => {
    await page.says("Nodes", 30);
    return (await page.eval("location.href")).startsWith(`${origin}/`) && !(await page.eval("location.href")).includes("token");
  });
  await check("the cookie is not for scripts", () => page.eval("document.cookie === ''"));
  const stranger = await browser.page();
  await check("the same address opens no second browser", async () => {
    await stranger.go(url);
    await stranger.says("was used before");
  });
  await check("the map shows nodes and pods as they fill", async () => {
    await page.until("document.querySelector('.totals dd')?.innerText === '12'", 30);
    await page.choose(".bar label:nth-of-type(2) select", "workload");
    await page.says("web · shop");
    await page.until("!document.body.innerText.includes('Reading the cluster')");
    return page.hasColours(4);
  });
  await check("what is wrong stands first, in words, with the command that goes on", async () => {
    await page.until("document.querySelector('.troubles li.is-bad')?.innerText.includes('1 pod has no node: Insufficient cpu')", 90);
    await page.until("document.querySelector('.troubles li.is-bad code')?.innerText === 'berth explain pod far-too-large -n default'");
    await page.until("[...document.querySelectorAll('.troubles li.is-warn')].some((one) => one.innerText.includes('Budget default/catalogue allows no disruption'))");
    return page.eval("document.querySelector('main').innerText.indexOf('has no node') < document.querySelector('main').innerText.indexOf('Fill by')");
  });
  await check("and in the head of every view", async () => {
    await goTo("now");
    await page.until("document.querySelector('header .chip.bad')?.innerText.includes('1 thing is wrong, 1 to watch')");
    await goTo("map");
    await page.until("!!document.querySelector('canvas')");
  });
  await check("Tab comes to what is wrong before it comes to the map, and Enter goes there", async () => {
    await page.eval("document.querySelector('main').focus()");
    await page.key("Tab");
    await page.until("document.activeElement.closest('.troubles') && document.activeElement.getAttribute('href') === '#/pod/default/far-too-large'");
    await page.key("Enter");
    await page.until("location.hash === '#/pod/default/far-too-large'");
    await goTo("map");
    await page.until("!!document.querySelector('canvas')");
  });
  await check("budgets are a table, those without room first", async () => {
    await goTo("budgets");
    await page.until("document.querySelector('.table-row')?.innerText.includes('allows no disruption')");
    await goTo("map");
    await page.until("!!document.querySelector('canvas')");
  });
  await shots("map-small", [[1280, 800, false], [1280, 800, true], [390, 844, false]]);
  await check("arrow keys go from node to node and tell about it, Enter opens", async () => {
    await page.eval("document.querySelector('canvas').focus()");
    await page.key("ArrowRight");
    await page.until("/node-4.*cpu \\d+ %/.test(document.querySelector('.map-frame [aria-live]').textContent)");
    await page.key("Enter");
    await page.until("location.hash === '#/node/node-4'");
  });
  await check("a node's page has its pods and its story", async () => {
    await page.says("Zone");
    await page.says("Story");
    await page.until("document.querySelectorAll('[role=grid] .table-row').length > 0");
  });
  await shots("node", [[1280, 800, false]]);
  await goTo("pods");
  await check("the search finds pods by namespace and word", async () => {
    await page.until("document.querySelectorAll('.table-row').length > 5");
    await page.type(".search", "ns:shop web");
    await page.until("[...document.querySelectorAll('.table-row')].length > 0 && [...document.querySelectorAll('.table-row')].every((row) => row.innerText.includes('shop') && row.innerText.includes('web'))");
    await page.type(".search", "");
  });
  await check("a column's title sorts", async () => {
    await page.click(".table-head button", "CPU");
    await page.until("document.querySelector('[aria-sort=descending]')?.innerText.includes('CPU')");
  });
  await check("a table is gone through by keys", async () => {
    await page.eval("document.querySelector('[role=grid]').focus()");
    await page.key("ArrowDown");
    await page.key("ArrowDown");
    await page.key("Enter");
    await page.until("location.hash.startsWith('#/pod/')");
    await page.says("Story");
    await page.until("document.querySelectorAll('.story li').length > 0");
  });
  await shots("pod", [[1280, 800, false]]);
  await goTo("pending");
  await check("a pending pod tells why", () => page.says("Insufficient cpu"));
  await check("explain says what would place it, and each node's verdict", async () => {
    await page.click(".table-row button", "why?");
    await page.says("smallest change", 30);
    await page.says("Each node");
    await page.until("[...document.querySelectorAll('.explain .table-row')].length >= 5");
  });
  await shots("pending", [[1280, 900, false], [390, 844, true]]);
  await goTo("now");
  await check("what happens comes as a stream", async () => {
    // Searched for, since a table shows what fits: on a slow machine nodes' comings and goings are above.
    await page.type(".search", "placed");
    await page.until("[...document.querySelectorAll('.table-row')].some((row) => row.innerText.includes('placed') && !row.innerText.includes('later'))", 30); // Before the page was opened.
    please("happen");
    await page.type(".search", "placed later");
    await page.until("[...document.querySelectorAll('.table-row')].some((row) => row.innerText.includes('later'))", 30);
    await page.says("queue");
  });
  await page.type(".search", "preempted");
  await check("preemptions are told", () => page.until("[...document.querySelectorAll('.table-row')].some((row) => row.innerText.includes('preempted'))", 30));
  await page.type(".search", "");
  await shots("now", [[1280, 800, false]]);
  await goTo("map");
  await check("what-if by clicks: lose this zone", async () => {
    await page.click(".zone button", "What if lost?");
    await page.says("lose zone=", 10);
    await page.until("document.querySelectorAll('figure canvas').length === 2", 40);
    await page.says("Moves");
  });
  await check("the answer stands in a sentence above all that it is made of", () => page.until("(() => { const sentence = document.querySelector('.verdict-sentence').getBoundingClientRect(); return sentence.bottom < 300 && sentence.bottom < document.querySelector('form').getBoundingClientRect().top; })()"));
  await shots("what-if", [[1280, 1000, false], [1280, 1000, true]]);
  await check("what-if: a workload is scaled", async () => {
    await goTo("what-if");
    await page.choose("form select", "scale");
    await page.type("form input[list]", "shop/web");
    await page.until("!!document.querySelector('form input[type=number]')");
    await page.type("form input[type=number]", "40");
    await page.click("form button", "Ask");
    await page.says("scale shop/web to 40");
    await page.until("document.querySelectorAll('figure canvas').length === 2", 40);
  });
  await check("an answer that the cluster has outrun says so, and can be asked again", async () => {
    await page.says("Of the cluster");
    please("outdate");
    await page.says("The cluster has moved on", 30);
    await page.says("node-2 is cordoned");
    await page.click(".stale button", "Ask the same again");
    await page.until("!document.querySelector('.stale')", 40);
    await page.says("Of the cluster");
    please("undo");
  });
  await check("a question that makes no sense is answered in words", async () => {
    await page.eval(`location.hash = "#/what-if/" + encodeURIComponent(JSON.stringify([{ drain: "nobody" }]))`);
    await page.until("document.querySelector('[role=alert]')?.innerText.includes('nobody')", 30);
  });
  for (const view of everyView) {
    await goTo(view);
    await page.look(390, 800, false);
    await check(`${view} needs no sideways scrolling at 390 pixels`, async () => (await page.until("document.querySelector('main h1')"), noSideways()));
    await check(`every control of ${view} has a name`, async () => {
      const nameless = await namelessControls();
      if (nameless) throw new Error(nameless);
    });
    await check(`every view can be gone to from ${view} at 390 pixels`, () => page.until("[...document.querySelectorAll('nav a')].every((one) => { const box = one.getBoundingClientRect(); return box.left >= 0 && box.right <= innerWidth && box.bottom > 0; })"));
    for (const isDark of [false, true]) {
      await page.look(1280, 800, isDark);
      await check(`every text of ${view} stands out from its ground${isDark ? ", in the dark" : ""}`, async () => {
        const pale = await paleTexts();
        if (pale) throw new Error(pale);
      });
    }
    await page.look(1280, 800, false);
  }
  await check("without --allow-changes the page offers none, and the relay refuses", async () => {
    await goTo("node/node-1");
    await page.says("Story");
    const status = await page.eval(`fetch("/api/v1/nodes/node-1", { method: "PATCH", headers: { "Content-Type": "application/merge-patch+json" }, body: '{"spec":{"unschedulable":true}}' }).then((answer) => answer.status)`);
    return status === 403 && !(await page.eval("[...document.querySelectorAll('button')].some((one) => /cordon/i.test(one.innerText))"));
  });
  await check("the relay answers with the user's rights", async () => (await page.eval(`fetch("/api/v1/namespaces/shop/pods?limit=1").then((answer) => answer.json()).then((list) => list.kind)`)) === "PodList");
  await goTo("map");
  await check("a zone whose nodes die is said, since when and with the command; forgotten when they are back", async () => {
    please("lose");
    await page.until("document.querySelector('.troubles li.is-bad')?.innerText.includes('is lost: none of its 4 nodes is ready')", 120);
    await page.until("/since \\d\\d:\\d\\d/.test(document.querySelector('.trouble-since').innerText)");
    await page.until("document.querySelector('.troubles code').innerText.startsWith('kubectl get nodes')");
    await page.until("document.querySelector('header .chip.bad')");
    please("find");
    await page.until("!document.querySelector('.troubles').innerText.includes('is lost')", 120);
  });
  await check("loss of the connection is said", async () => {
    please("freeze");
    await page.says("connection is lost", 40);
  });
  await check("and mended", async () => {
    please("thaw");
    await page.until("!document.body.innerText.includes('connection is lost')", 40);
    await page.until("document.querySelector('.totals dd')?.innerText === '12'", 30);
  });
}

async function cluster() {
  await page.go(url);
  await page.until("document.querySelector('.totals dd')?.innerText === '12'", 30);
  await check("a cluster that does not answer is said", async () => {
    please("stop");
    await page.says("The cluster does not answer", 40);
  });
  await check("and when it is back, the present is shown", async () => {
    please("start");
    await page.until("!document.body.innerText.includes('does not answer')", 60);
    await page.until("document.querySelector('.totals dd')?.innerText === '12'", 30);
  });
}

async function attack() {
  await page.go(url);
  await check("a recording with markup in every name is read", () => page.until("document.querySelector('.slider input')", 40));
  await page.eval(`{ const slider = document.querySelector('.slider input'); slider.value = Number(slider.max) * 0.75; slider.dispatchEvent(new Event("input", { bubbles: true })); }`);
  for (const view of everyView) {
    await goTo(view);
    await page.until("document.querySelector('main h1')");
    if (view === "nodes" || view === "pods" || view === "pending") await page.says("<img src=x");
    await check(`markup in names stays text: ${view}`, isUnharmed);
    await page.look(390, 800, false);
    await check(`and long names do not push ${view} sideways`, noSideways);
    await page.look(1280, 800, false);
  }
  await goTo("nodes");
  await page.click(".table-row a");
  await check("a node's page, too", async () => (await page.says("Story"), isUnharmed()));
  await goTo("pods");
  await page.click(".table-row a", "<img");
  await check("a pod's page, too", async () => (await page.says("Story"), isUnharmed()));
  await page.eval(`{ const canvas = document.querySelector("canvas"); location.hash = "#/map"; }`);
  await page.until("!!document.querySelector('canvas')");
  await page.eval(`{ const canvas = document.querySelector("canvas"); const box = canvas.getBoundingClientRect(); canvas.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, clientX: box.left + 10, clientY: box.top + 40 })); }`);
  await check("the hint of the map, too", async () => (await page.until("document.querySelector('.hint')?.innerText.includes('<img')"), isUnharmed()));
}

async function recording() {
  await page.go(url);
  await check("5,000 nodes and their pods are read", async () => {
    await page.until("document.querySelector('.slider input')", 120);
    await page.until("document.querySelector('.totals dd')?.innerText === '5,000'", 20);
  });
  const slide = (share) => page.eval(`{ const slider = document.querySelector('.slider input'); slider.value = Number(slider.max) * ${share}; slider.dispatchEvent(new Event("input", { bubbles: true })); }`);
  await check("the slider goes to any time", async () => {
    await slide(0.55);
    await page.until(`Number(document.querySelectorAll('.totals dd')[1].innerText.replace(/,/g, '')) === ${more}`, 30);
    await page.choose(".bar label:nth-of-type(2) select", "workload");
    await page.until("document.querySelectorAll('.legend li').length >= 7", 10);
    return page.hasColours(6);
  });
  await shots("map", [[1280, 800, false], [1280, 800, true], [390, 844, false]]);
  await slide(0.68);
  await page.choose(".bar label:nth-of-type(2) select", "load");
  await check("a lost zone is said in words, and counted", async () => {
    await page.until("document.querySelector('.troubles li')?.innerText.includes('Zone zone-c is lost: none of its 1,666 nodes is ready')", 20);
    await page.until("/since .*\\d/.test(document.querySelector('.trouble-since').innerText)");
    await page.until("document.querySelector('nav .bad-badge')?.innerText.startsWith('1,666')");
  });
  await check("its nodes are unlike all others on the map: red all over, crossed out", () => page.untilDrawn("data.filter((one) => one === 0xff3b26d1).length > 1666 * 10"));
  await shots("zone-lost", [[1280, 800, false], [1280, 800, true], [390, 844, false]]);
  await page.choose(".bar label:nth-of-type(2) select", "workload");
  await check("and back", async () => {
    await slide(0.1);
    await page.until(`Number(document.querySelectorAll('.totals dd')[1].innerText.replace(/,/g, '')) < ${more} / 2`, 30);
  });
  await slide(0.55);
  await check("all pods are a table of some dozen rows", async () => {
    await goTo("pods");
    await page.until("document.querySelectorAll('.table-row').length > 5", 20);
    return (await page.eval("document.querySelectorAll('.table-row').length")) < 80 && (await page.eval("Number(document.querySelector('[role=grid]').getAttribute('aria-rowcount'))")) === Number(more) + 1;
  });
  await check("its end is reached by one key", async () => {
    await page.eval("document.querySelector('[role=grid]').focus()");
    await page.key("End");
    await page.until(`[...document.querySelectorAll('.table-row')].some((row) => row.getAttribute('aria-rowindex') === '${Number(more) + 1}')`);
  });
  await goTo("map");
  await check("it plays", async () => {
    await slide(0.1);
    await page.choose(".replay select", "3600");
    await page.click(".replay button");
    await page.until("Number(document.querySelector('.slider input').value) > 600000", 20);
    const busy = await page.eval(`new Promise((resolve) => { const times = []; let last = performance.now(); const step = (now) => { times.push(now - last); last = now; times.length < 30 ? requestAnimationFrame(step) : resolve(times.slice(1).sort((a, b) => a - b)); }; requestAnimationFrame(step); })`);
    console.log(`frames while it plays: median ${Math.round(busy[14])} ms, slowest ${Math.round(busy[busy.length - 1])} ms`);
  });
}

async function large() {
  await page.go(url);
  await check("5,000 live nodes are on the map", () => page.until("document.querySelector('.totals dd')?.innerText === '5,000'", 120));
  await check("their pods, too", () => page.until(`Number(document.querySelectorAll('.totals dd')[1].innerText.replace(/,/g, '')) >= ${more}`, 120));
  await check("the table of nodes has them all", async () => {
    await goTo("nodes");
    await page.until("document.querySelector('[role=grid]')?.getAttribute('aria-rowcount') === '5001'", 20);
  });
}

try {
  await { small, cluster, attack, recording, large }[mode]();
} catch (error) {
  await check("the script runs to its end", () => Promise.reject(error));
}
await check("no script failed and no policy was breached", () => {
  if (page.complaints.length > 0) throw new Error(page.complaints.join("\n"));
});
await check("nothing was asked of anybody else", () => {
  const others = page.requests.filter((one) => !one.startsWith(`${origin}/`) && one !== "about:blank");
  if (others.length > 0) throw new Error(others.join("\n"));
});
await browser.close();
finish();
