import { FrameError, parseFrame } from "./frame.js";
import { backoffMs, type Gate, sleep } from "./pace.js";
import { State, type UnitChange } from "./state.js";
import type { Closed, Meta, Waiting } from "./types.js";
import type { Held, Part, Update, Watch } from "./watch.js";
import { type Wire, WireError, type WireTrack } from "./wire.js";

/** How long a subscription may stay without a snapshot, and how long a gap may last. */
const firstFrameMs = 10_000;
const gapMs = 1_000;
/** How often a key that had rows is asked for again although the server says that it is not found. */
const notFoundRetries = 5;

/** The reset codes that views use: their names, and what to tell people. */
const codes: Readonly<Record<number, readonly [code: string, message: string]>> = {
	6: ["unauthorized", "no right to watch this key"],
	13: ["not_found", "no such view, or not a key of it"],
	64: ["view_dropped", "the view no longer exists"],
	65: ["view_changed", "the view's columns changed"],
	66: ["token_expired", "the right to watch this key has expired"],
	67: ["busy", "the server or this session is at its limit of keys"],
	68: ["shutdown", "the server is going away"],
	69: ["internal", "a fault of the server"],
	70: ["too_expensive", "the key needs more work than the server allows"],
	27: ["too_large", "the key's rows are more than one group holds"],
};

/** Reasons after which asking again is of no use. Everything else is tried again. */
const finalCodes: ReadonlySet<string> = new Set(["unauthorized", "not_found", "view_dropped", "token_expired", "too_expensive", "too_large"]);

/** What a feed needs of its client. */
export interface FeedHost {
	readonly gate: Gate;
	/** The view's meta on this session; undefined if the server has none. */
	meta(wire: Wire, broadcast: string): Promise<Meta | undefined>;
	forgetMeta(broadcast: string): void;
	/** Called when the last watch has left. */
	unused(feed: Feed): void;
}

/** How one subscription ended: for good, or why it is asked for again. */
type End = { readonly closed: Closed } | { readonly again: "now" | "later"; readonly reason: Closed };

const silent: Closed = { code: "silent", message: "no answer within 10 s; the session may be at its limit of keys" };
const gap: Closed = { code: "gap", message: "changes were missed, and no snapshot came" };
const lost: Closed = { code: "lost", message: "the connection is lost" };
const ended: Closed = { code: "lost", message: "the server ended the track" };

/** The one subscription to a key that all its watches share, over all sessions. */
export class Feed {
	readonly state = new State();
	/** The rows of the state; another map after each frame that was applied. */
	held: Held = new Map();
	meta: Meta | undefined;
	live = false;
	/** Why the key is being asked for again, undefined while it is live or waits for its first answer. */
	waiting: Waiting | undefined;
	frames = 0;

	readonly broadcast: string;
	readonly track: string;
	readonly #host: FeedHost;
	readonly #watches = new Set<Watch>();
	readonly #stopped = new AbortController();
	#current: WireTrack | undefined;
	#attempt = 0;

	constructor(host: FeedHost, broadcast: string, track: string) {
		this.#host = host;
		this.broadcast = broadcast;
		this.track = track;
	}

	/** No longer of use: another watch of the key needs another feed. */
	get stopped(): boolean {
		return this.#stopped.signal.aborted;
	}

	get used(): boolean {
		return this.#watches.size > 0;
	}

	join(watch: Watch): void {
		this.#watches.add(watch);
	}

	leave(watch: Watch): void {
		if (this.#watches.delete(watch) && this.#watches.size === 0) this.#host.unused(this);
	}

	/** Ends the subscription and all watches. */
	stop(closed: Closed): void {
		this.#stopped.abort();
		this.#current?.close();
		for (const watch of [...this.#watches]) watch.end(closed);
	}

	/** The state as an update, undefined before the first snapshot. */
	current(): Update | undefined {
		if (!this.state.held) return undefined;
		const units = [...this.held].map(([name, rows]) => ({ name, entered: rows, left: [] }));
		return this.#update(units, false);
	}

	/** Subscribes on this session, again and again, until it has ended or the feed is stopped. */
	async run(wire: Wire): Promise<void> {
		let sessionOver = false;
		void wire.closed.then(() => {
			sessionOver = true;
			if (!this.stopped) this.#wait(lost);
		});
		const over = () => sessionOver || this.#stopped.signal.aborted;
		while (!over()) {
			const leave = await this.#host.gate.enter();
			let end: End;
			try {
				if (over()) return;
				end = await this.#subscription(wire, over, leave);
			} finally {
				leave();
			}
			if (over()) return; // before anything is touched that belongs to the next session by now
			if ("closed" in end) {
				this.#setLive(false);
				return this.stop(end.closed);
			}
			// Even "now" lets the old subscription end first: @moq/net would hand its cache to a new one.
			const delay = end.again === "now" ? 50 : backoffMs(this.#attempt++);
			this.#wait(end.reason);
			await Promise.race([sleep(delay, this.#stopped.signal), wire.closed]);
		}
	}

	/** Runs one subscription to its end; established is called when others may begin. */
	async #subscription(wire: Wire, over: () => boolean, established: () => void): Promise<End> {
		const meta = this.#host.meta(wire, this.broadcast);
		const track = wire.subscribe(this.broadcast, this.track);
		this.#current = track;
		let asked: End | undefined;
		const askAgain = (again: "now" | "later", reason: Closed) => {
			asked ??= { again, reason };
			track.close(); // ends read below
		};
		let watchdog: ReturnType<typeof setTimeout> | undefined = setTimeout(() => askAgain("later", silent), firstFrameMs);
		try {
			for (;;) {
				const next = await track.read();
				if (next === undefined) return asked ?? { again: "later", reason: ended };
				this.frames++;
				this.meta = await meta;
				if (over()) return { again: "later", reason: lost }; // another session may be ahead already
				const outcome = this.#apply(next.group, next.frame, next.payload);
				if (typeof outcome === "object") return outcome;
				if (outcome === "gap") {
					watchdog ??= setTimeout(() => askAgain("now", gap), gapMs);
				} else if (outcome === "applied") {
					clearTimeout(watchdog);
					watchdog = undefined;
					this.#attempt = 0;
					established();
				}
			}
		} catch (error) {
			if (error instanceof FrameError) {
				this.#host.forgetMeta(this.broadcast);
				return { again: "later", reason: { code: "malformed", message: error.message } };
			}
			return this.#failed(error);
		} finally {
			clearTimeout(watchdog);
			if (this.#current === track) this.#current = undefined;
			track.close();
		}
	}

	#failed(error: unknown): End {
		const known = error instanceof WireError && error.code !== undefined ? codes[error.code] : undefined;
		const [code, message] = known ?? ["lost", error instanceof Error ? error.message : ""];
		return this.#ended({ code, message });
	}

	#ended(closed: Closed): End {
		if (closed.code === "view_changed") {
			this.#host.forgetMeta(this.broadcast);
			return { again: "now", reason: closed };
		}
		const mayReturn = closed.code === "not_found" && this.state.held && this.#attempt < notFoundRetries;
		return finalCodes.has(closed.code) && !mayReturn ? { closed } : { again: "later", reason: closed };
	}

	#apply(group: number, index: number, payload: Uint8Array): "applied" | "gap" | "other" | End {
		const frame = parseFrame(payload, this.meta);
		const before = this.held;
		const change = this.state.apply(group, index, frame);
		if (change.outcome === "applied") {
			this.held = new Map(this.state.names.map((name) => [name, this.state.rows(name)]));
			this.waiting = undefined;
			this.#setLive(true);
			const update = this.#update(change.units, change.skipped);
			for (const watch of [...this.#watches]) watch.update(update, this.held, before);
		}
		if (change.closed !== undefined) return this.#ended(change.closed);
		return change.outcome === "applied" || change.outcome === "gap" ? change.outcome : "other";
	}

	#update(units: readonly Pick<UnitChange, "name" | "entered" | "left">[], skipped: boolean): Update {
		const { revision, epoch } = this.state;
		const parts = new Map<string, Part>();
		for (const [name, rows] of this.held) {
			if (name !== "") parts.set(name, { rows, entered: [], left: [], stale: this.state.stale(name) });
		}
		for (const { name, entered, left } of units) {
			if (name !== "") parts.set(name, { rows: [], stale: undefined, ...parts.get(name), entered, left });
		}
		const plain = units.find((u) => u.name === "");
		return {
			rows: this.state.rows(),
			entered: plain?.entered ?? [],
			left: plain?.left ?? [],
			revision,
			epoch,
			skipped,
			stale: this.state.stale(),
			parts,
		};
	}

	/** Tells the watches that the key is asked for again, and why. */
	#wait(reason: Closed): void {
		this.waiting = { ...reason, retries: this.#attempt };
		this.#setLive(false);
		for (const watch of [...this.#watches]) watch.waits(this.waiting);
	}

	#setLive(live: boolean): void {
		if (this.live === live) return;
		this.live = live;
		for (const watch of [...this.#watches]) watch.statusChanged();
	}
}
