// The demo page in Chromium, against `heddle demo` itself. Run by `npm run test:browser`.
import assert from "node:assert/strict";
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type BrowserContext, chromium, type Page } from "playwright-core";

const root = fileURLToPath(new URL("../../../../", import.meta.url));
const flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"];
flags.push("--disable-background-networking", "--disable-component-update", "--disable-sync");
const patience = { timeout: 20_000 };

let directory: string;
let server: ChildProcess;
let url: string;
let browser: BrowserContext;

before(async () => {
	directory = mkdtempSync(join(tmpdir(), "heddle-page-"));
	const binary = join(directory, "heddle");
	execFileSync("go", ["build", "-o", binary, "."], { cwd: root, stdio: "inherit" });
	// No writer of its own: what changes is what the tests write.
	server = spawn(binary, ["demo", "--writes-per-second", "0"], { stdio: ["ignore", "pipe", "inherit"] });
	url = await new Promise<string>((resolve, reject) => {
		let printed = "";
		server.stdout?.on("data", (chunk) => {
			printed += chunk;
			const found = /http:\/\/\S+\//.exec(printed)?.[0];
			if (found !== undefined && /Ctrl-C/.test(printed)) resolve(found);
		});
		server.on("exit", (code) => reject(new Error(`heddle demo ended with ${code}: ${printed}`)));
	});
	const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
	browser = await chromium.launchPersistentContext(join(directory, "profile"), {
		executablePath,
		args: flags,
		viewport: { width: 1280, height: 900 },
	});
});

after(async () => {
	await browser?.close();
	if (server && server.exitCode === null) {
		const ended = new Promise((resolve) => server.once("exit", resolve));
		server.kill("SIGINT");
		await ended;
	}
	rmSync(directory, { recursive: true, force: true });
});

/** Opens the page and waits until all its cards are live; nothing may be reported to the console. */
async function open(query: string, cards: number): Promise<Page> {
	const page = await browser.newPage();
	page.on("pageerror", (error) => assert.fail(`error in the page: ${error.message}`));
	page.on("console", (m) => {
		if (m.type() === "error" && !/400 \(Bad Request\)/.test(m.text())) assert.fail(`console: ${m.text()}`);
	});
	await page.goto(url + query);
	const live = (n: number) => document.querySelectorAll('.card[data-status="live"][data-rows]').length === n;
	await page.waitForFunction(live, cards, patience);
	return page;
}

function frames(page: Page): Promise<Record<string, number>> {
	return page.evaluate(() => {
		const cards = [...document.querySelectorAll<HTMLElement>(".card")];
		return Object.fromEntries(cards.map((c) => [c.dataset["key"], Number(c.dataset["frames"])]));
	});
}

async function write(page: Page, op: "insert" | "delete", courier: number, parcel: number): Promise<void> {
	const [first, second] = await page.locator("#columns input").all();
	await first?.fill(String(courier));
	await second?.fill(String(parcel));
	await page.click(`#write button[value=${op}]`);
}

async function figure(name: string): Promise<number> {
	const stats = (await (await fetch(`${url}demo/stats`)).json()) as Record<string, number>;
	return stats[name] as number;
}

for (const [transport, name] of [["webtransport", "WebTransport"], ["websocket", "WebSocket"]] as const) {
	test(`twelve keys over ${name}: a write reaches its viewer and nobody else`, async () => {
		const page = await open(`?transport=${transport}`, 12);
		assert.equal(await page.textContent("#state-text"), name);
		assert.deepEqual(new Set(await page.locator(".card .via").allTextContents()), new Set([name]));
		await page.waitForFunction(() => document.getElementById("watched")?.textContent === "12", undefined, patience);
		const before = await frames(page);
		// A parcel without an address is on nobody's tour.
		await write(page, "insert", 3, transport === "webtransport" ? 1001 : 1002);
		await page.waitForFunction(() => /Durable/.test(document.getElementById("write-note")?.textContent ?? ""));
		const unknown = await frames(page);
		assert.deepEqual(unknown, before, "a fact that changes nobody's rows was sent to somebody");
		await write(page, "insert", 3, 1); // whoever has parcel 1 keeps it: only the third tour changes
		await page.waitForSelector('.card[data-key="3"] .row.entering', patience);
		await write(page, "delete", 3, 1);
		await page.waitForSelector('.card[data-key="3"] .row.leaving', patience);
		await page.waitForFunction(() => document.querySelector('.card[data-key="3"] .leaving') === null, undefined, patience);
		const later = await frames(page);
		assert.deepEqual(later, { ...before, 3: (before["3"] as number) + 2 });
		await page.close();
	});

	test(`200 keys over ${name}`, async () => {
		const page = await open(`?keys=1-200&transport=${transport}`, 200);
		await page.close();
	});
}

test("somebody adds viewers, writes and asks", async () => {
	const page = await open("", 12);
	await page.fill("#add-key", "77");
	await page.keyboard.press("Enter");
	await page.waitForSelector('.card[data-key="77"][data-status="live"]', patience);
	await write(page, "insert", 77, 5);
	await page.waitForFunction(() => /courier 77/.test(document.getElementById("write-note")?.textContent ?? ""));
	await page.fill("#add-key", "7x");
	await page.keyboard.press("Enter");
	assert.match((await page.textContent("#add-note")) ?? "", /whole number/);
	await page.click("#ask button");
	await page.waitForFunction(() => /rows? at revision/.test(document.getElementById("ask-note")?.textContent ?? ""));
	await page.fill("#ask-query", "?tour(1, P");
	await page.click("#ask button");
	await page.waitForFunction(() => /never closed/.test(document.getElementById("ask-note")?.textContent ?? ""));
	// By keyboard: closing a card leaves the focus on the next one.
	await page.focus('.card[data-key="77"] .close');
	await page.keyboard.press("Enter");
	assert.equal(await page.locator(".card").count(), 12);
	assert.equal(await page.evaluate(() => document.activeElement?.getAttribute("aria-label")), "Stop watching courier 1");
	await write(page, "delete", 77, 5);
	await page.waitForFunction(() => /Durable/.test(document.getElementById("write-note")?.textContent ?? ""));
	await page.close();
});

test("another transport takes over without a card going blank", async () => {
	const page = await open("?transport=websocket", 12);
	await page.selectOption("#transport", "webtransport");
	const over = () =>
		document.documentElement.dataset["transport"] === "webtransport" &&
		document.querySelectorAll('.card[data-status="live"]').length === 12;
	await page.waitForFunction(over, undefined, patience);
	assert.equal(await page.locator(".row.entering, .row.leaving").count(), 0);
	await page.close();
});

test("light, dark, wide and narrow; everything has a name", async () => {
	const page = await open("", 12);
	const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
	await page.emulateMedia({ colorScheme: "light" });
	const light = await background();
	await page.emulateMedia({ colorScheme: "dark" });
	assert.notEqual(await background(), light);
	for (const width of [320, 390, 768, 1280, 1920]) {
		await page.setViewportSize({ width, height: 800 });
		const wider = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
		assert.equal(wider, 0, `at ${width} the page is ${wider} pixels too wide`);
	}
	const nameless = await page.evaluate(() => {
		const named = (e: HTMLElement) =>
			e.getAttribute("aria-label") || e.textContent?.trim() || (e as HTMLInputElement).labels?.[0]?.textContent?.trim();
		return [...document.querySelectorAll<HTMLElement>("button, input, select, a")].filter((e) => !named(e)).length;
	});
	assert.equal(nameless, 0);
	await page.keyboard.press("Tab");
	assert.equal(await page.evaluate(() => document.activeElement?.className), "skip");
	await page.close();
});

test("when the last page has gone, nothing is watched", async () => {
	const deadline = Date.now() + 20_000;
	while ((await figure("watchedKeys")) > 0) {
		assert.ok(Date.now() < deadline, "keys are still watched after 20 s");
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
});
