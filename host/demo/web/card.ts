// One card: the rows of one key, drawn as they change.
import type { Client, KeyValue, Meta, Row, Update, Watch } from "../../../sdk/js/src/index.js";
import { compareRows } from "../../../sdk/js/src/index.js";
import type { Column, Info } from "./server.js";

/** How long a row stays marked after it entered, and how long it is seen to leave. */
const enteringMs = 2200;
const leavingMs = 1300;
/** Rows drawn at most; the count tells the rest. */
const rowsMax = 100;
/** Updates remembered, to tell when a write was seen. */
const seenMax = 64;

const numbers = new Intl.NumberFormat("en");

interface Line {
	readonly row: Row;
	readonly element: HTMLLIElement;
	timer: ReturnType<typeof setTimeout> | undefined;
	leaving: boolean;
}

/** What a card asks of its page. */
export interface CardActions {
	fill(): void;
	close(): void;
}

export class Card {
	readonly element: HTMLLIElement;
	/** The key as people read it, for example "courier 7". */
	readonly name: string;

	readonly #info: Info;
	readonly #key: readonly KeyValue[];
	readonly #lines: Line[] = []; // sorted, those that are leaving included
	readonly #seen: { revision: number; at: number }[] = [];
	#client: Client | undefined;
	#watch: Watch | undefined;
	#frame = 0;
	#drawn = false;
	#hidden: ReadonlySet<number> | undefined;

	constructor(info: Info, parameters: readonly Column[], key: readonly KeyValue[], actions: CardActions) {
		this.#info = info;
		this.#key = key;
		const template = document.getElementById("card") as HTMLTemplateElement;
		this.element = (template.content.cloneNode(true) as DocumentFragment).firstElementChild as HTMLLIElement;
		const param = parameters.map((p) => p.name).join(", ");
		const value = key.map(String).join(", ");
		this.name = `${param} ${value}`.trim();
		this.#part(".param").textContent = param;
		this.#part(".key").textContent = value;
		this.element.dataset["key"] = value;
		this.element.style.setProperty("--hue", String(hueOf(value)));
		this.#part(".rows").setAttribute("aria-label", `Rows of ${this.name}`);
		const fill = this.#part(".fill");
		fill.setAttribute("aria-label", `Write a fact for ${this.name}`);
		fill.addEventListener("click", () => actions.fill());
		const close = this.#part(".close");
		close.setAttribute("aria-label", `Stop watching ${this.name}`);
		close.addEventListener("click", () => actions.close());
		this.#showCount(0);
	}

	/** Watches the key over this client; what is drawn stays until the first rows come. */
	watch(client: Client): void {
		const old = this.#watch;
		this.#client = client;
		const watch = client.watch(this.#info.graph, this.#info.view, this.#key);
		this.#watch = watch;
		watch.on("update", (update) => this.#updated(watch, update));
		watch.on("status", () => this.#showStatus());
		watch.on("waiting", () => this.#showStatus());
		old?.close();
		this.#showStatus();
		this.showTransport();
	}

	close(): void {
		const watch = this.#watch;
		this.#watch = undefined;
		watch?.close();
		cancelAnimationFrame(this.#frame);
		for (const line of this.#lines) clearTimeout(line.timer);
		this.element.remove();
	}

	/** Brings the card into sight and marks it for a moment. */
	find(): void {
		this.element.scrollIntoView({ block: "nearest", behavior: "smooth" });
		replay(this.element, "found");
	}

	/** When the first rows at or behind this revision came, on the clock of performance.now. */
	seenAt(revision: number): number | undefined {
		const index = this.#seen.findIndex((s) => s.revision >= revision);
		// The oldest one remembered may stand for many before it.
		return index < 0 || this.#seen[index]?.revision !== revision ? undefined : this.#seen[index]?.at;
	}

	showTransport(): void {
		const transport = this.#client?.transport;
		this.#part(".via").textContent =
			transport === "webtransport" ? "WebTransport" : transport === "websocket" ? "WebSocket" : "connecting …";
	}

	#part(selector: string): HTMLElement {
		return this.element.querySelector(selector) as HTMLElement;
	}

	#updated(watch: Watch, update: Update): void {
		if (watch !== this.#watch) return;
		this.#seen.push({ revision: update.revision, at: performance.now() });
		if (this.#seen.length > seenMax) this.#seen.shift();
		this.element.dataset["revision"] = String(update.revision);
		this.element.dataset["rows"] = String(update.rows.length);
		this.element.dataset["frames"] = String(watch.frames);
		this.#hidden ??= hiddenColumns(watch.meta);
		// Drawn once per picture of the screen, however many updates meet before it.
		if (this.#frame === 0) {
			this.#frame = requestAnimationFrame(() => {
				this.#frame = 0;
				if (this.#watch !== undefined) this.#draw(this.#watch);
			});
		}
	}

	#draw(watch: Watch): void {
		const changed = this.#merge(watch.rows.slice(0, rowsMax));
		if (changed && this.#drawn) replay(this.element, "moved");
		this.#drawn = true;
		this.#showCount(watch.rows.length);
		this.#part(".rev").textContent = `rev ${numbers.format(watch.revision ?? 0)}`;
		const stale = this.#part(".stale");
		stale.hidden = watch.stale === undefined;
		stale.textContent = watch.stale ? `Last good rows: ${watch.stale.message || watch.stale.code}` : "";
	}

	/** Brings the lines to these sorted rows and tells whether anything entered or left. */
	#merge(rows: readonly Row[]): boolean {
		let changed = false;
		let i = 0;
		for (const row of rows) {
			while (i < this.#lines.length && compareRows((this.#lines[i] as Line).row, row) < 0) {
				changed = this.#leave(this.#lines[i++] as Line) || changed;
			}
			const line = this.#lines[i];
			if (line !== undefined && compareRows(line.row, row) === 0) {
				if (line.leaving) this.#enter(line);
			} else {
				const fresh = this.#line(row);
				this.#part(".rows").insertBefore(fresh.element, line?.element ?? null);
				this.#lines.splice(i, 0, fresh);
				if (this.#drawn) this.#enter(fresh);
				changed = true;
			}
			i++;
		}
		for (; i < this.#lines.length; i++) changed = this.#leave(this.#lines[i] as Line) || changed;
		return changed;
	}

	#line(row: Row): Line {
		const element = document.createElement("li");
		element.className = "row";
		for (const [i, cell] of row.entries()) {
			if (this.#hidden?.has(i)) continue;
			const span = document.createElement("span");
			span.className = typeof cell === "string" ? "text" : "number";
			span.textContent = String(cell);
			element.append(span);
		}
		if (element.childElementCount === 0) element.textContent = "yes"; // a row of key values only
		element.title = element.textContent ? [...element.children].map((c) => c.textContent).join(" · ") : "";
		return { row, element, timer: undefined, leaving: false };
	}

	#enter(line: Line): void {
		clearTimeout(line.timer);
		line.leaving = false;
		line.element.classList.remove("leaving");
		line.element.classList.add("entering");
		line.element.removeAttribute("aria-hidden");
		line.timer = setTimeout(() => line.element.classList.remove("entering"), enteringMs);
	}

	#leave(line: Line): boolean {
		if (line.leaving) return false;
		clearTimeout(line.timer);
		line.leaving = true;
		line.element.classList.remove("entering");
		line.element.classList.add("leaving");
		line.element.setAttribute("aria-hidden", "true"); // it is no row of the result any more
		line.timer = setTimeout(() => {
			line.element.remove();
			this.#lines.splice(this.#lines.indexOf(line), 1);
		}, leavingMs);
		return true;
	}

	#showCount(rows: number): void {
		const drawn = rows > rowsMax ? `, ${rowsMax} shown` : "";
		this.#part(".count").textContent = `${numbers.format(rows)} ${rows === 1 ? "row" : "rows"}${drawn}`;
	}

	#showStatus(): void {
		const watch = this.#watch;
		if (watch === undefined) return;
		this.element.dataset["status"] = watch.status;
		const { closed, waiting } = watch;
		const stale = this.#part(".stale");
		if (closed !== undefined && closed.code !== "client") {
			stale.hidden = false;
			stale.textContent = `Ended: ${closed.message || closed.code}`;
		} else if (waiting !== undefined && waiting.code !== "lost") {
			// That the connection is lost stands in the head of the page.
			stale.hidden = false;
			stale.textContent = `Waiting: ${waiting.message || waiting.code}`;
		}
	}
}

/**
 * Columns that show the key itself again. A row has the goal's arguments first, `_` excluded; those
 * that are parameters are the same in all rows.
 */
function hiddenColumns(meta: Meta | undefined): ReadonlySet<number> {
	const goal = /:=\s*\?\s*\w+\(([^)]*)\)/.exec(meta?.text ?? "")?.[1] ?? "";
	const args = goal.split(",").map((a) => a.trim()).filter((a) => a !== "_");
	return new Set(args.flatMap((a, i) => (a.startsWith("$") ? [i] : [])));
}

/** A colour for a key, far from its neighbours' colours. */
function hueOf(value: string): number {
	let hash = 0;
	for (const char of value) hash = (hash * 31 + (char.codePointAt(0) as number)) % 100_000;
	return Math.round((hash * 137.508) % 360);
}

/** Starts an animation class again, also if it is still running. */
function replay(element: HTMLElement, name: string): void {
	element.classList.remove(name);
	void element.offsetWidth;
	element.classList.add(name);
}
