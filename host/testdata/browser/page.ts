// The page of the browser tests: it watches what its address says, keeps what it is told, and
// checks each update against the one before. The tests drive it through `lab`.
//
//     ?server=http://127.0.0.1:4443&transport=websocket&view=hot&keys=1-50&via=path
import { Client, compareRows, type Row, type Transport, type Update, type Watch } from "../../../sdk/js/src/index.js";
import { dial } from "../../../sdk/js/src/wire.js";

const graph = "g";

type Via = "track" | "path";

/** What one update said, without the rows. */
interface Told {
	readonly revision: number;
	readonly entered: readonly Row[];
	readonly left: readonly Row[];
	readonly skipped: boolean;
}

/** One watch and all that it told. */
class Log {
	readonly told: Told[] = [];
	readonly watch: Watch;
	readonly #key: number;
	readonly #faults: string[];
	readonly #toldFirst: () => void;
	#replayed: Row[] = [];
	#last: { epoch: string; revision: number } | undefined;
	#waiting: (() => void)[] = [];

	constructor(client: Client, view: string, key: number, via: Via, faults: string[], toldFirst: () => void) {
		this.#key = key;
		this.#faults = faults;
		this.#toldFirst = toldFirst;
		this.watch = client.watch(graph, view, key, { via });
		this.watch.on("update", (u) => this.#update(u));
		this.watch.on("closed", ({ code }) => code === "client" || this.#fault(`ended: ${code}`));
	}

	/** Resolves once the rows are those of this revision or a later one. */
	async at(revision: number): Promise<void> {
		while ((this.watch.revision ?? 0) < revision) await new Promise<void>((resolve) => this.#waiting.push(resolve));
	}

	#update(u: Update): void {
		const { revision, epoch, entered, left, skipped, rows } = u;
		this.told.push({ revision, entered, left, skipped });
		if (this.told.length === 1) this.#toldFirst();
		this.#replay(entered, left);
		if (spell(this.#replayed) !== spell(rows)) {
			this.#fault(`rows ${spell(rows)} at ${revision}, but what entered and left gives ${spell(this.#replayed)}`);
		}
		const last = this.#last;
		// A new opening of the log may begin at the revision that the old one ended with.
		if (last !== undefined && (revision < last.revision || (revision === last.revision && epoch === last.epoch))) {
			this.#fault(`revision ${revision} after ${last.revision}`);
		}
		this.#last = { epoch, revision };
		for (const wake of this.#waiting.splice(0)) wake();
	}

	/** Applies an update to the rows that the updates before it gave: nothing enters or leaves twice. */
	#replay(entered: readonly Row[], left: readonly Row[]): void {
		for (const row of left) {
			const at = this.#replayed.findIndex((r) => compareRows(r, row) === 0);
			if (at < 0) this.#fault(`${spell([row])} left and was not there`);
			else this.#replayed.splice(at, 1);
		}
		for (const row of entered) {
			if (this.#replayed.some((r) => compareRows(r, row) === 0)) this.#fault(`${spell([row])} entered twice`);
			else this.#replayed.push(row);
		}
		this.#replayed.sort(compareRows);
	}

	#fault(text: string): void {
		this.#faults.push(`key ${this.#key}: ${text}`);
	}
}

function spell(rows: readonly Row[]): string {
	return JSON.stringify(rows, (_, v: unknown) => (typeof v === "bigint" ? `${v}` : v));
}

class Lab {
	readonly faults: string[] = [];
	/** When sessions were asked for, in milliseconds. */
	readonly dials: number[] = [];

	/** Watches that have had rows, and how long that took them all. */
	held = 0;
	snapshotsMs = 0;

	readonly #client: Client;
	readonly #logs = new Map<string, Log>();

	constructor(wanted: URLSearchParams) {
		const get = (name: string, standard = "") => wanted.get(name) ?? standard;
		this.#client = new Client(get("server"), {
			transport: get("transport") as Transport,
			dial: (url, transport, signal) => {
				this.dials.push(performance.now());
				return dial(url, transport, signal);
			},
		});
		const began = performance.now();
		const toldFirst = () => {
			this.held++;
			if (this.held === this.#logs.size) this.snapshotsMs = performance.now() - began;
		};
		const [first, last] = get("keys").split("-").map(Number) as [number, number];
		for (const via of get("via", "track").split(",") as Via[]) {
			for (let key = first; key <= last; key++) {
				const log = new Log(this.#client, get("view", "hot"), key, via, this.faults, toldFirst);
				this.#logs.set(`${via} ${key}`, log);
			}
		}
	}

	get transport(): string {
		return this.#client.transport ?? "";
	}

	/** Watches that are live. */
	get live(): number {
		return [...this.#logs.values()].filter((log) => log.watch.status === "live").length;
	}

	rows(key: number, via = "track"): readonly Row[] {
		return this.#log(key, via).watch.rows;
	}

	told(key: number, via = "track"): readonly Told[] {
		return this.#log(key, via).told;
	}

	/** Resolves to the newest thing told about a key once it is at this revision or beyond. */
	async at(key: number, revision: number): Promise<Told | undefined> {
		const log = this.#log(key, "track");
		await log.at(revision);
		return log.told.at(-1);
	}

	/** Frames and updates of each key, in the order of the keys. */
	counts(): { frames: number[]; updates: number[] } {
		const logs = [...this.#logs.values()];
		return { frames: logs.map((l) => l.watch.frames), updates: logs.map((l) => l.told.length) };
	}

	/** Holds the page's only thread until the server of the page answers. */
	stall(): void {
		const request = new XMLHttpRequest();
		request.open("GET", "stall", false);
		request.send();
	}

	#log(key: number, via: string): Log {
		const log = this.#logs.get(`${via} ${key}`);
		if (log === undefined) throw new Error(`key ${key} is not watched by ${via}`);
		return log;
	}
}

(globalThis as { lab?: Lab }).lab = new Lab(new URLSearchParams(location.search));
