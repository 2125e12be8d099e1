/** Lets a bounded number of holders in at a time, in the order in which they asked. */
export class Gate {
	#free: number;
	readonly #waiting: (() => void)[] = [];

	constructor(places: number) {
		this.#free = places;
	}

	/** Resolves when there is a place; call what it resolves to once to give the place back. */
	async enter(): Promise<() => void> {
		if (this.#free > 0) this.#free--;
		else await new Promise<void>((resolve) => this.#waiting.push(resolve));
		let left = false;
		return () => {
			if (left) return;
			left = true;
			const next = this.#waiting.shift();
			if (next) next();
			else this.#free++;
		};
	}
}

/** Runs tasks in order, at most so many in each interval. */
export class Pace {
	readonly #tasks: (() => void)[] = [];
	readonly #batch: number;
	readonly #intervalMs: number;
	#timer: ReturnType<typeof setTimeout> | undefined;

	constructor(batch: number, intervalMs: number) {
		this.#batch = batch;
		this.#intervalMs = intervalMs;
	}

	push(task: () => void): void {
		this.#tasks.push(task);
		this.#timer ??= setTimeout(() => this.#run(), 0);
	}

	#run(): void {
		for (const task of this.#tasks.splice(0, this.#batch)) task();
		this.#timer = this.#tasks.length > 0 ? setTimeout(() => this.#run(), this.#intervalMs) : undefined;
	}
}

/** Milliseconds before the attempt with this number, counted from 0: doubling, at most 10 s, with jitter. */
export function backoffMs(attempt: number): number {
	return Math.min(10_000, 200 * 2 ** Math.min(attempt, 10)) * (0.5 + Math.random() / 2);
}

/** Resolves after some milliseconds, or at once when the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
	return new Promise((resolve) => {
		if (signal.aborted) return resolve();
		const done = () => {
			clearTimeout(timer);
			signal.removeEventListener("abort", done);
			resolve();
		};
		const timer = setTimeout(done, ms);
		signal.addEventListener("abort", done, { once: true });
	});
}
