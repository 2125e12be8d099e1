/** The static type of a key parameter or of a column; "untyped" if the client does not know it. */
export type Type = "int" | "float" | "string" | "bool" | "bytes" | "timestamp" | "untyped";

/**
 * One value of a row. An int is a number within ±(2^53−1) and a bigint outside, so that it is
 * always exact. A timestamp is its milliseconds since 1970, an int: new Date(cell) is the time.
 * Bytes are a Uint8Array, never modified after it was handed out. Only a nullable column has null.
 */
export type Cell = number | bigint | string | boolean | Uint8Array | null;

/** One row: a cell for each column. Never modified after it was handed out. */
export type Row = readonly Cell[];

/**
 * A value of a key. A number spells an int, a float and a timestamp alike; use a bigint beyond
 * ±(2^53−1).
 */
export type KeyValue = number | bigint | string | boolean | Uint8Array;

/** A column of a view's rows, or a parameter of its key. */
export interface Column {
	readonly name: string;
	readonly type: Type;
	/** The column may hold null. A parameter is never nullable. */
	readonly nullable: boolean;
}

/** What a view's track `meta` says. */
export interface Meta {
	readonly view: string;
	/** Number of the program in force. */
	readonly schema: number;
	/** The view's declaration, as a program spells it. */
	readonly text: string;
	readonly parameters: readonly Column[];
	/** Columns of the rows; undefined if not told. Empty if the view has named parts. */
	readonly columns: readonly Column[] | undefined;
	/** Columns of each named part, undefined if the view has none. */
	readonly parts: ReadonlyMap<string, readonly Column[]> | undefined;
}

/** Why rows are only the last good ones. */
export interface Stale {
	/** "error": a rule failed on a row; "behind": more than a second behind. */
	readonly code: string;
	readonly message: string;
	readonly rule?: string;
	readonly row?: Row;
}

/** Why a watch has no answer at present, or no longer; it is being asked for again. */
export interface Waiting {
	/**
	 * "busy": the server or the session is at a limit, "silent": no answer came, "lost": the
	 * connection or the stream broke; or another code of the server, such as "shutdown" or "internal".
	 */
	readonly code: string;
	readonly message: string;
	/** How often the key was asked for in vain since the last good answer. */
	readonly retries: number;
}

/** Why a subscription ended for good. */
export interface Closed {
	/** For example "not_found", "view_dropped", "token_expired", or "client" after close(). */
	readonly code: string;
	readonly message: string;
}

export interface CallOptions {
	/**
	 * Any text of 1 to 255 bytes. A call that is repeated with its key is done once: use one
	 * wherever a call may be repeated after a lost answer.
	 */
	idempotencyKey?: string;
	/** Write only if the graph is at this revision, else "precondition_failed". */
	expectRevision?: number | bigint;
	/** Gives up waiting; the call may or may not have been done. */
	signal?: AbortSignal;
}

/** What a call did. It is durable. */
export interface Receipt {
	readonly revision: number;
	/** Rows that were not there before. */
	readonly inserted: number;
	/** Rows that are gone. */
	readonly deleted: number;
	/** The first answer again: the idempotency key was known, and nothing was written now. */
	readonly replayed: boolean;
	/**
	 * What each statement of the action did: rows is how many met its condition. A claim that came
	 * too late has 0 there, and is no error.
	 */
	readonly statements: readonly { readonly rows: number; readonly inserted: number; readonly deleted: number }[];
}
