// The demo page: one card for each watched key, figures of the family, three forms. It talks to
// the views through sdk/js and to the server's /demo endpoints for what belongs to the demo only.
import { Client, type KeyValue, parseKeySegment, type Transport, type Type } from "../../../sdk/js/src/index.js";
import { Card } from "./card.js";
import { askOnce, type Column, type Info, type Stats, writeFact } from "./server.js";

/** Shown at most: the page stays quick, and the server's limits are far away. */
const cardsMax = 400;
const sparkPoints = 60;

function at<T extends Element>(id: string): T {
	return document.getElementById(id) as unknown as T;
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const fine = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });

class Page {
	readonly #info: Info;
	/** The view's parameters, as its declaration in the program has them. */
	readonly #parameters: Column[];
	readonly #cards = new Map<string, Card>();
	#client: Client;

	constructor(info: Info, transport: "auto" | Transport) {
		this.#info = info;
		this.#parameters = declaredParameters(info.program, info.view);
		this.#client = this.#connect(transport);
	}

	get client(): Client {
		return this.#client;
	}

	start(): void {
		at("program").textContent = this.#info.program;
		at("add-label").textContent = this.#parameters.map((p) => p.name).join(", ") || "Key";
		at("view-text").textContent = viewLine(this.#info);
		at("relation").textContent = this.#info.relation;
		at<HTMLInputElement>("ask-query").value = sampleQuery(this.#info);
		this.#fields();
		this.#show(wantedKeys(this.#info, this.#parameters));
		at("again").addEventListener("click", () => {
			this.#show(this.#info.keys.map((key) => [key]));
			at<HTMLElement>("add-key").focus(); // the button goes
		});
		at("add").addEventListener("submit", (event) => this.#onAdd(event));
		at("write").addEventListener("submit", (event) => void this.#onWrite(event as SubmitEvent));
		at("ask").addEventListener("submit", (event) => void this.#onAsk(event));
		// Says goodbye, so that the server need not wait for silence.
		addEventListener("pagehide", () => this.#client.close());
		addEventListener("pageshow", (event) => {
			if (event.persisted) location.reload();
		});
		at("transport").addEventListener("change", (event) => {
			const { value } = event.target as HTMLSelectElement;
			this.#reconnect(value as "auto" | Transport);
		});
	}

	#connect(transport: "auto" | Transport): Client {
		const client = new Client(location.origin, { transport });
		client.on("status", () => this.#showConnection());
		return client;
	}

	/** Another transport is another session: all cards move over and keep their rows on screen. */
	#reconnect(transport: "auto" | Transport): void {
		const old = this.#client;
		this.#client = this.#connect(transport);
		this.#showConnection();
		for (const card of this.#cards.values()) card.watch(this.#client);
		old.close();
	}

	#showConnection(): void {
		const { status, transport } = this.#client;
		at<HTMLElement>("state").dataset["status"] = status;
		at("state-text").textContent = transport ? transportName(transport) : "Connecting …";
		document.documentElement.dataset["transport"] = transport ?? "";
		for (const card of this.#cards.values()) card.showTransport();
	}

	#show(keys: readonly KeyValue[][]): void {
		for (const key of keys) {
			const result = this.#add(key);
			if (result?.added) at("cards").append(result.card.element);
		}
		this.#keep();
	}

	/** Puts the keys on the page into its address, so that a reload finds them. */
	#keep(): void {
		const keys = [...at("cards").children].map((card) => (card as HTMLElement).dataset["key"] ?? "");
		at<HTMLElement>("none").hidden = keys.length > 0;
		if (this.#parameters.length !== 1) return; // ?keys= has no spelling for more
		const url = new URL(location.href);
		if (keys.join() === this.#info.keys.join()) url.searchParams.delete("keys");
		else url.searchParams.set("keys", keys.join());
		if (url.href !== location.href) history.replaceState(null, "", url);
	}

	#add(key: readonly KeyValue[]): { card: Card; added: boolean } | undefined {
		const card = new Card(this.#info, this.#parameters, key, {
			fill: () => this.#fill(key),
			close: () => this.#remove(card),
		});
		const held = this.#cards.get(card.name);
		if (held !== undefined) return { card: held, added: false };
		if (this.#cards.size >= cardsMax) return undefined;
		this.#cards.set(card.name, card);
		card.watch(this.#client);
		return { card, added: true };
	}

	#remove(card: Card): void {
		const next = (card.element.nextElementSibling ?? card.element.previousElementSibling) as HTMLElement | null;
		this.#cards.delete(card.name);
		card.close();
		this.#keep();
		// The keyboard's place must not fall out of the page with the button.
		(next?.querySelector<HTMLElement>(".close") ?? at<HTMLElement>("add-key")).focus();
	}

	#onAdd(event: Event): void {
		event.preventDefault();
		const input = at<HTMLInputElement>("add-key");
		try {
			const result = this.#add(parseKey(input.value, this.#parameters));
			if (result === undefined) return note("add-note", `This page shows at most ${cardsMax} keys.`, "bad");
			if (result.added) at("cards").prepend(result.card.element);
			this.#keep();
			result.card.find();
			const { added, card } = result;
			note("add-note", added ? `Watching ${card.name}.` : `${card.name} is on the page already.`, "good");
			input.select();
		} catch (error) {
			note("add-note", message(error), "bad");
		}
	}

	#fields(): void {
		for (const column of this.#info.columns) {
			const label = document.createElement("label");
			const input = document.createElement("input");
			label.append(column.name, input);
			input.required = column.type !== "string";
			input.autocomplete = "off";
			input.spellcheck = false;
			if (column.type === "int") input.inputMode = "numeric";
			at("columns").append(label);
		}
	}

	/** Puts a key into the form: its values are the relation's first columns in this demo. */
	#fill(key: readonly KeyValue[]): void {
		const inputs = [...at("columns").querySelectorAll("input")];
		for (const [i, value] of key.entries()) {
			const input = inputs[i];
			if (input) input.value = String(value);
		}
		const next = inputs[key.length] ?? inputs[0];
		next?.focus();
		next?.select();
	}

	async #onWrite(event: SubmitEvent): Promise<void> {
		event.preventDefault();
		const op = (event.submitter as HTMLButtonElement | null)?.value === "delete" ? "delete" : "insert";
		const inputs = [...at("columns").querySelectorAll("input")];
		const started = performance.now();
		try {
			const receipt = await writeFact(op, inputs.map((input) => input.value), this.#info.columns);
			const answered = performance.now() - started;
			if (receipt.inserted + receipt.deleted === 0) {
				const why = op === "insert" ? "That fact was there already" : "There was no such fact";
				return note("write-note", `${why}; nothing changed.`, "plain");
			}
			note("write-note", `${durable(receipt.revision, answered)}.`, "good");
			await this.#showReach(receipt.revision, started, answered);
		} catch (error) {
			note("write-note", message(error), "bad");
		}
	}

	/** Tells which cards the write reached and how soon; they have a moment to get it. */
	async #showReach(revision: number, started: number, answered: number): Promise<void> {
		await new Promise((resolve) => setTimeout(resolve, 250));
		const reached = [...this.#cards.values()].flatMap((card) => {
			const seen = card.seenAt(revision);
			return seen === undefined ? [] : [{ name: card.name, ms: seen - started }];
		});
		if (reached.length === 0) return;
		const names = reached.slice(0, 3).map((r) => r.name).join(", ") + (reached.length > 3 ? " and more" : "");
		const ms = Math.max(...reached.map((r) => r.ms));
		note("write-note", `${durable(revision, answered)}; on ${names} after ${fine.format(ms)} ms.`, "good");
	}

	async #onAsk(event: Event): Promise<void> {
		event.preventDefault();
		const input = at<HTMLInputElement>("ask-query");
		try {
			const { revision, columns, rows, truncated } = await askOnce(this.#info.graph, input.value);
			const shown = rows.slice(0, 12).map((row) => row.join(" · "));
			const more = rows.length > 12 || truncated ? `\n… ${rows.length > 12 ? rows.length - 12 : ""} more` : "";
			const head = `${rows.length} ${rows.length === 1 ? "row" : "rows"} at revision ${numbers.format(revision)}`;
			note("ask-note", `${head} (${columns.map((c) => c.name).join(", ")})\n${shown.join("\n")}${more}`, "answer");
		} catch (error) {
			note("ask-note", message(error), "bad");
		}
	}
}

function durable(revision: number, ms: number): string {
	return `Durable at revision ${numbers.format(revision)} after ${fine.format(ms)} ms`;
}

function transportName(transport: Transport): string {
	return transport === "webtransport" ? "WebTransport" : "WebSocket";
}

function note(id: string, text: string, kind: "good" | "bad" | "plain" | "answer"): void {
	const element = at<HTMLElement>(id);
	element.textContent = text;
	element.className = `note ${kind}`;
}

function message(error: unknown): string {
	return error instanceof Error ? error.message : String(error);
}

/** Finds `view NAME($a: int, …)` in the program: the page knows the types before the first meta. */
function declaredParameters(program: string, view: string): Column[] {
	const list = new RegExp(`view\\s+${view}\\(([^)]*)\\)`).exec(program)?.[1] ?? "";
	return [...list.matchAll(/\$(\w+)\s*:\s*(\w+)/g)].map((m) => ({ name: m[1] as string, type: m[2] as Type }));
}

/** The view's declaration as it stands in the program. */
function viewLine(info: Info): string {
	return new RegExp(`view\\s+${info.view}\\(.*`).exec(info.program)?.[0]?.trim() ?? "";
}

/** The view's own query with the first key put in, as something to begin with. */
function sampleQuery(info: Info): string {
	const query = viewLine(info).split(":=")[1] ?? "";
	return query.replace(/\$\w+/, String(info.keys[0] ?? "")).trim();
}

/** The server's keys, or those of ?keys=: values and ranges, as in keys=1-50,77. */
function wantedKeys(info: Info, parameters: readonly Column[]): KeyValue[][] {
	const wanted = new URLSearchParams(location.search).get("keys");
	if (wanted === null) return info.keys.map((key) => [key]);
	const keys: KeyValue[][] = [];
	for (const part of wanted.split(",")) {
		const range = /^(\d+)-(\d+)$/.exec(part);
		if (range === null) {
			try {
				if (part !== "") keys.push(parseKey(part, parameters));
			} catch {
				// An address that somebody typed: what is no key shows no card.
			}
			continue;
		}
		const last = Math.min(Number(range[2]), Number(range[1]) + cardsMax - 1);
		for (let key = Number(range[1]); key <= last; key++) keys.push([key]);
	}
	return keys;
}

/** Reads what somebody typed as a key: values apart by commas if the view has several parameters. */
function parseKey(text: string, parameters: readonly Column[]): KeyValue[] {
	const parts = parameters.length > 1 ? text.split(",").map((part) => part.trim()) : [text.trim()];
	if (parameters.length > 1 && parts.length !== parameters.length) {
		throw new Error(`A key has ${parameters.length} values: ${parameters.map((p) => p.name).join(", ")}.`);
	}
	return parts.map((part, i) => {
		const { name, type } = parameters[i] ?? { name: "key", type: "int" as Type };
		if (type === "string") return part;
		try {
			return parseKeySegment(part, type);
		} catch {
			const what = type === "int" ? "a whole number" : type === "float" ? "a number" : "true or false";
			throw new Error(`${name} is ${what}; “${part}” is not.`);
		}
	});
}

/** The figures of the head, asked for once a second while somebody looks. */
class Figures {
	readonly #writes: number[] = [];
	readonly #cpu: number[] = [];

	start(): void {
		void this.#look();
		setInterval(() => {
			if (document.visibilityState === "visible") void this.#look();
		}, 1000);
	}

	async #look(): Promise<void> {
		try {
			const response = await fetch("/demo/stats");
			if (!response.ok) throw new Error(response.statusText);
			this.#show((await response.json()) as Stats);
			banner();
		} catch {
			banner("The server does not answer. The rows below are the last ones known.");
		}
	}

	#show(s: Stats): void {
		at("watched").textContent = numbers.format(s.watchedKeys);
		at("viewers").textContent = numbers.format(s.viewers);
		at("revision").textContent = numbers.format(s.revision);
		at("writes").textContent = s.writesPerSecond < 10 ? fine.format(s.writesPerSecond) : numbers.format(s.writesPerSecond);
		const cpu = at("cpu");
		cpu.textContent = s.serverCpuMicrosPerWrite > 0 ? numbers.format(s.serverCpuMicrosPerWrite) : "–";
		const unit = document.createElement("small");
		unit.textContent = " µs";
		cpu.append(unit);
		spark("writes-spark", this.#writes, s.writesPerSecond);
		spark("cpu-spark", this.#cpu, s.serverCpuMicrosPerWrite);
	}
}

function spark(id: string, values: number[], value: number): void {
	if (values.length === 0 && value === 0) return; // the first look has nothing to compare with
	values.push(value);
	if (values.length > sparkPoints) values.shift();
	if (values.length < 3) return; // a dot or a stroke says nothing
	const top = Math.max(...values, 1e-9);
	const first = sparkPoints - values.length; // now is at the right, from the first second on
	const points = values.map((v, i) => `${(100 * (first + i)) / (sparkPoints - 1)},${(22 - (20 * v) / top).toFixed(1)}`);
	at(id).querySelector("polyline")?.setAttribute("points", points.join(" "));
}

function banner(text = ""): void {
	const element = at<HTMLElement>("banner");
	if (element.textContent === text) return; // an alert is read aloud once, not every second
	element.textContent = text;
	element.hidden = text === "";
}

async function start(): Promise<void> {
	const select = at<HTMLSelectElement>("transport");
	const asked = new URLSearchParams(location.search).get("transport");
	if (asked === "webtransport" || asked === "websocket") select.value = asked;
	if (!("WebTransport" in globalThis)) {
		for (const option of select.options) option.disabled = option.value === "webtransport";
	}
	for (;;) {
		try {
			const response = await fetch("/demo/info");
			if (!response.ok) throw new Error(response.statusText);
			const page = new Page((await response.json()) as Info, select.value as "auto" | Transport);
			banner();
			page.start();
			new Figures().start();
			// For those who open the console.
			(globalThis as { heddle?: unknown }).heddle = page;
			return;
		} catch (error) {
			banner(`The server does not tell what to show (${message(error)}). Trying again.`);
			await new Promise((resolve) => setTimeout(resolve, 2000));
		}
	}
}

void start();
