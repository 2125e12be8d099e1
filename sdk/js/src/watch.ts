import type { Feed } from "./feed.js";
import { difference } from "./order.js";
import type { Closed, Column, Meta, Row, Stale, Waiting } from "./types.js";

/** What a watch tells after each change. Arrays are never modified and may be kept. */
export interface Update {
	/** The whole result, sorted. */
	readonly rows: readonly Row[];
	/** Rows that were not in the result at the last update. The first update has all. */
	readonly entered: readonly Row[];
	/** Rows that are no longer in the result since the last update. */
	readonly left: readonly Row[];
	/** The commit at which the rows are exact. */
	readonly revision: number;
	/** The opening of the graph's log that the revision belongs to. */
	readonly epoch: string;
	/** Revisions between the last update and this one may never have been seen. */
	readonly skipped: boolean;
	/** The rows are only the last good ones, and why. */
	readonly stale: Stale | undefined;
	/**
	 * The results of the view's named parts, all at this revision; empty if it has none. The members
	 * above say nothing of the rows of such a view. A part that is gone is told once, with what left.
	 */
	readonly parts: ReadonlyMap<string, Part>;
}

/** The result of one named part of a view, as an update is of a view without. */
export interface Part {
	readonly rows: readonly Row[];
	readonly entered: readonly Row[];
	readonly left: readonly Row[];
	readonly stale: Stale | undefined;
}

/** What was held at some time: the rows of each part, or those of a plain view under "". */
export type Held = ReadonlyMap<string, readonly Row[]>;

/**
 * "waiting": no answer yet, or none any more: Watch.waiting tells why. The rows are the last ones
 * known.
 */
export type WatchStatus = "waiting" | "live" | "closed";

/** What Watch.on can listen to. */
export interface WatchEvents {
	update: Update;
	status: WatchStatus;
	/** The key was asked for in vain, and will be asked for again; told each time. */
	waiting: Waiting;
	/** The watch has ended for good. */
	closed: Closed;
}

/** Thrown out of `for await` when the server ended the watch. */
export class WatchClosedError extends Error {
	readonly code: string;
	constructor(closed: Closed) {
		super(closed.message || closed.code);
		this.name = "WatchClosedError";
		this.code = closed.code;
	}
}

/** Gives one consumer its updates: what changed since the last one that it took. */
export class Cursor {
	#delivered: Held = new Map();
	#started = false;

	/** Returns u, which has these rows, as this consumer sees it; before are those that u starts from. */
	next(u: Update, rows: Held, before: Held): Update {
		const direct = this.#started && this.#delivered === before;
		this.#started = true;
		const from = this.#delivered;
		this.#delivered = rows;
		if (direct) return u;
		const parts = new Map<string, Part>();
		for (const [name, held] of from) {
			if (name !== "" && !rows.has(name)) parts.set(name, { rows: [], entered: [], left: held, stale: undefined });
		}
		for (const [name, held] of rows) {
			if (name === "") continue;
			parts.set(name, { rows: held, ...difference(from.get(name) ?? [], held), stale: u.parts.get(name)?.stale });
		}
		return { ...u, ...difference(from.get("") ?? [], u.rows), parts };
	}
}

/**
 * One watch of one key. Several watches of a key share one subscription. It is an async iterable;
 * a slow loop sees fewer, larger updates, never a wrong one. Each loop and each callback begins
 * with an update that has all rows as entered.
 */
export class Watch implements AsyncIterable<Update> {
	readonly graph: string;
	readonly view: string;
	/** The key as it is spelt in paths, segments joined by slashes. */
	readonly key: string;

	readonly #feed: Feed;
	readonly #listeners: { [E in keyof WatchEvents]: Set<(event: WatchEvents[E]) => void> } = {
		update: new Set(),
		status: new Set(),
		waiting: new Set(),
		closed: new Set(),
	};
	readonly #cursors = new Set<(u: Update, rows: Held, before: Held) => void>();
	readonly #wakers = new Set<() => void>();
	#closed: Closed | undefined;

	/** Made by Client.watch. */
	constructor(feed: Feed, graph: string, view: string, key: string) {
		this.#feed = feed;
		this.graph = graph;
		this.view = view;
		this.key = key;
	}

	/** The whole result, sorted; empty before the first update. */
	get rows(): readonly Row[] {
		return this.#feed.state.rows();
	}

	/** The rows of the view's named parts; empty before the first update, and for a view without. */
	get parts(): ReadonlyMap<string, readonly Row[]> {
		return new Map([...this.#feed.held].filter(([name]) => name !== ""));
	}

	/** The commit at which the rows are exact, undefined before the first update. */
	get revision(): number | undefined {
		return this.#feed.state.held ? this.#feed.state.revision : undefined;
	}

	/** Why the rows of a view without named parts are only the last good ones. */
	get stale(): Stale | undefined {
		return this.#feed.state.stale();
	}

	/** Columns of the rows, undefined before the first update or if the server does not tell; meta has those of parts. */
	get columns(): readonly Column[] | undefined {
		return this.#feed.meta?.columns;
	}

	/** What the server says of the view, undefined before the first update. */
	get meta(): Meta | undefined {
		return this.#feed.meta;
	}

	get status(): WatchStatus {
		return this.#closed ? "closed" : this.#feed.live ? "live" : "waiting";
	}

	/** Why the key is being asked for again; undefined while it is live or waits for its first answer. */
	get waiting(): Waiting | undefined {
		return this.#closed ? undefined : this.#feed.waiting;
	}

	/** Why the watch has ended, undefined while it has not. */
	get closed(): Closed | undefined {
		return this.#closed;
	}

	/** Frames received for this key so far, by all its watches together. */
	get frames(): number {
		return this.#feed.frames;
	}

	/** Calls fn at each event, until the returned function is called. */
	on<E extends keyof WatchEvents>(event: E, fn: (event: WatchEvents[E]) => void): () => void {
		if (event !== "update") {
			const listeners = this.#listeners[event];
			listeners.add(fn);
			return () => listeners.delete(fn);
		}
		const cursor = new Cursor();
		let primed = false;
		const deliver = (u: Update, rows: Held, before: Held) => {
			primed = true;
			(fn as (u: Update) => void)(cursor.next(u, rows, before));
		};
		this.#cursors.add(deliver);
		queueMicrotask(() => {
			const u = this.#feed.current();
			if (!primed && u !== undefined && this.#cursors.has(deliver)) deliver(u, this.#feed.held, new Map());
		});
		return () => this.#cursors.delete(deliver);
	}

	/** Ends the watch. The last watch of a key ends its subscription. */
	close(): void {
		this.end({ code: "client", message: "" });
	}

	async *[Symbol.asyncIterator](): AsyncGenerator<Update, void, undefined> {
		const cursor = new Cursor();
		const first = this.#feed.current();
		let pending: { u: Update; rows: Held; before: Held } | undefined = first && {
			u: first,
			rows: this.#feed.held,
			before: new Map(),
		};
		let wake = () => {};
		const deliver = (u: Update, rows: Held, before: Held) => {
			// Updates that meet here become one: from where the first began, with the newest rows.
			pending = pending
				? { u: { ...u, skipped: true }, rows, before: new Map() }
				: { u, rows, before };
			wake();
		};
		const waker = () => wake();
		this.#cursors.add(deliver);
		this.#wakers.add(waker);
		try {
			for (;;) {
				if (pending !== undefined) {
					const { u, rows, before } = pending;
					pending = undefined;
					yield cursor.next(u, rows, before);
				} else if (this.#closed !== undefined) {
					if (this.#closed.code === "client") return;
					throw new WatchClosedError(this.#closed);
				} else {
					await new Promise<void>((resolve) => (wake = resolve));
				}
			}
		} finally {
			this.#cursors.delete(deliver);
			this.#wakers.delete(waker);
		}
	}

	/** Called by the feed. */
	update(u: Update, rows: Held, before: Held): void {
		for (const deliver of [...this.#cursors]) guarded(() => deliver(u, rows, before));
	}

	/** Called by the feed. */
	statusChanged(): void {
		const status = this.status;
		for (const fn of [...this.#listeners.status]) guarded(() => fn(status));
	}

	/** Called by the feed. */
	waits(reason: Waiting): void {
		for (const fn of [...this.#listeners.waiting]) guarded(() => fn(reason));
	}

	/** Called by the feed and by close. */
	end(closed: Closed): void {
		if (this.#closed !== undefined) return;
		this.#closed = closed;
		this.#feed.leave(this);
		this.statusChanged();
		for (const fn of [...this.#listeners.closed]) guarded(() => fn(closed));
		for (const wake of [...this.#wakers]) wake();
	}
}

/** A callback that throws must not take the others or the subscription with it. */
function guarded(call: () => void): void {
	try {
		call();
	} catch (error) {
		queueMicrotask(() => {
			throw error;
		});
	}
}
