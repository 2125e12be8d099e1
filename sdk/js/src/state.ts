import type { Frame, Unit } from "./frame.js";
import { difference, patchedRows, sortedRows } from "./order.js";
import type { Closed, Row, Stale } from "./types.js";

/**
 * What State.apply did with a frame: "applied", the state is exact at the frame's revision;
 * "partial", more parts of a snapshot are to come; "old", ignored; "gap", its base is not held and
 * a newer snapshot is needed.
 */
export type Outcome = "applied" | "partial" | "old" | "gap";

/** The effect of a frame on one unit. */
export interface UnitChange {
	readonly name: string;
	readonly entered: readonly Row[];
	readonly left: readonly Row[];
	/** The set no longer holds the key; its rows are in left. */
	readonly removed: boolean;
	readonly closed: Closed | undefined;
}

/** The effect of one frame. */
export interface Change {
	readonly outcome: Outcome;
	/** Publications between the held revision and this one may never have been seen. */
	readonly skipped: boolean;
	readonly units: readonly UnitChange[];
	/** The track's last word, whatever the outcome. */
	readonly closed: Closed | undefined;
}

interface Held {
	readonly rows: readonly Row[];
	readonly stale: Stale | undefined;
}

interface Pending {
	readonly rows: Row[];
	stale: Stale | undefined;
	closed: Closed | undefined;
}

type Effect = Omit<Change, "closed">;

const nothing = { skipped: false, units: [] } as const;

/** Holds the rows of one track and applies its frames; docs/formats/views.md has the rules. */
export class State {
	/** A snapshot was taken, so that everything else here has a meaning. */
	held = false;
	epoch = "";
	/** The commit at which the rows are exact. */
	revision = 0;
	/** Newest group seen, −1 before the first. */
	sequence = -1;

	#units = new Map<string, Held>();
	#next = 0; // index of the frame that follows in the group
	#torn = false; // a frame of the group was missed, so its snapshot is not whole
	#pending: Map<string, Pending> | undefined;

	/** Names of the parts or keys held; a plain view is one unit with an empty name. */
	get names(): string[] {
		return [...this.#units.keys()];
	}

	/** Rows of a unit, sorted. The array is never modified. */
	rows(name = ""): readonly Row[] {
		return this.#units.get(name)?.rows ?? [];
	}

	stale(name = ""): Stale | undefined {
		return this.#units.get(name)?.stale;
	}

	/** Applies the frame with this index of the group with this sequence. */
	apply(sequence: number, index: number, f: Frame): Change {
		if (sequence < this.sequence) return { outcome: "old", ...nothing, closed: undefined };
		if (sequence > this.sequence || index === 0) {
			this.sequence = sequence;
			this.#next = 0;
			this.#torn = false;
			this.#pending = undefined;
		}
		if (index !== this.#next) {
			this.#torn = true;
			this.#pending = undefined;
		}
		this.#next = index + 1;
		return { ...this.#apply(f), closed: f.closed };
	}

	#apply(f: Frame): Effect {
		const same = this.held && f.epoch === this.epoch;
		if (same && f.revision < this.revision) {
			this.#pending = undefined;
			return { outcome: "old", ...nothing };
		}
		const snapshot = f.last || f.units.some((u) => u.snapshot !== undefined);
		if (snapshot && !this.#torn) this.#addPending(f.units);
		if (snapshot && !f.last) return { outcome: this.#torn ? "gap" : "partial", ...nothing };
		if (same && f.base === this.revision && f.revision > this.revision) {
			const effect = this.#patch(f);
			if (effect !== undefined) {
				this.#pending = undefined;
				return effect;
			}
		}
		if (snapshot && !this.#torn) return this.#take(f);
		if (!snapshot) {
			const again = same && f.revision === this.revision;
			if (again && f.base === undefined) return this.#mark(f.units);
			if (again || (f.base === undefined && f.closed !== undefined)) return { outcome: "old", ...nothing };
		}
		this.#pending = undefined;
		return { outcome: "gap", ...nothing };
	}

	#addPending(units: readonly Unit[]): void {
		this.#pending ??= new Map();
		for (const u of units) {
			let p = this.#pending.get(u.name);
			if (p === undefined) {
				p = { rows: [], stale: undefined, closed: undefined };
				this.#pending.set(u.name, p);
			}
			for (const row of u.snapshot ?? []) p.rows.push(row);
			p.stale = u.stale;
			p.closed = u.closed;
		}
	}

	/** Applies insert and retract of all units, or of none and returns undefined. */
	#patch(f: Frame): Effect | undefined {
		const next: [string, Held][] = [];
		const units: UnitChange[] = [];
		for (const u of f.units) {
			const held = this.#units.get(u.name);
			if (held === undefined) return undefined;
			const entered = sortedRows(u.insert);
			const left = sortedRows(u.retract);
			const rows = patchedRows(held.rows, entered, left);
			if (rows === undefined) return undefined;
			next.push([u.name, { rows, stale: u.stale }]);
			units.push({ name: u.name, entered, left, removed: false, closed: u.closed });
		}
		for (const [name, held] of next) this.#units.set(name, held);
		this.revision = f.revision;
		return { outcome: "applied", skipped: false, units };
	}

	/** Makes the pending snapshot the state. */
	#take(f: Frame): Effect {
		const skipped = this.held && (f.epoch !== this.epoch || f.revision > this.revision);
		const next = new Map<string, Held>();
		const units: UnitChange[] = [];
		for (const [name, p] of this.#pending ?? []) {
			const rows = sortedRows(p.rows);
			next.set(name, { rows, stale: p.stale });
			units.push({ name, ...difference(this.rows(name), rows), removed: false, closed: p.closed });
		}
		for (const [name, held] of this.#units) {
			if (!next.has(name)) units.push({ name, entered: [], left: held.rows, removed: true, closed: undefined });
		}
		this.#units = next;
		this.#pending = undefined;
		this.held = true;
		this.epoch = f.epoch;
		this.revision = f.revision;
		return { outcome: "applied", skipped, units };
	}

	/** Takes over the stale members of units whose rows stay. */
	#mark(units: readonly Unit[]): Effect {
		const changes: UnitChange[] = [];
		for (const u of units) {
			const held = this.#units.get(u.name);
			if (held === undefined) continue;
			this.#units.set(u.name, { rows: held.rows, stale: u.stale });
			changes.push({ name: u.name, entered: [], left: [], removed: false, closed: u.closed });
		}
		return { outcome: "applied", skipped: false, units: changes };
	}
}
