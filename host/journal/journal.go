// Package journal is the log that makes a graph durable: what a record is, how
// records and facts are spelled in bytes, and what a journal must do with them.
// It does no I/O and starts no goroutine. host/ingest is the caller; the
// embedded implementation is journal/pebble, and the suite in
// journal/conformance holds every implementation to the same behaviour.
package journal

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Limits of format 1. A record over a limit is refused whole, with ErrTooLarge.
const (
	GraphNameBytesMax      = 128
	TupleBytesMax          = 1 << 20
	CallerBytesMax         = 256
	IdempotencyKeyBytesMax = 256
	AnswerBytesMax         = 64 << 10
	ProgramBytesMax        = 4 << 20
	MutationsMax           = 1 << 24 // of one record
	DropsMax               = 1 << 16 // of one record
	RecordBytesMax         = 1 << 30
)

// Errors that callers branch on. ErrCorrupt and ErrGap are wrapped by a
// *DamageError, which says what is damaged, where, and what to do about it.
var (
	ErrName     = errors.New("journal: invalid graph name")
	ErrNotFound = errors.New("journal: no such graph")
	ErrExists   = errors.New("journal: graph exists already")
	ErrNotOpen  = errors.New("journal: graph is not open for writing")
	// ErrSequence: the records do not continue the head. Nothing was written.
	ErrSequence = errors.New("journal: records do not continue the head")
	ErrTooLarge = errors.New("journal: over a limit")
	// ErrFull: too little disk space is left. Nothing was written; the graph is
	// read-only until space returns, and the same Append may be tried again.
	ErrFull = errors.New("journal: disk is full")
	// ErrGap: records that once existed, or that the caller asked for, are missing.
	ErrGap = errors.New("journal: revisions are missing")
	// ErrCorrupt: bytes are there and are not what was written.
	ErrCorrupt = errors.New("journal: damaged")
	// ErrExhausted: no opening number is left below OpeningMax.
	ErrExhausted = errors.New("journal: opening numbers are used up")
	ErrLocked    = errors.New("journal: directory is in use by another process")
	ErrFormat    = errors.New("journal: unknown format")
	ErrClosed    = errors.New("journal: closed")
	// ErrFailed: an earlier write failed for good, so memory may be ahead of the
	// disk. The process must end and recover from the log.
	ErrFailed = errors.New("journal: an earlier write failed")
)

// Hash is a link of the chain: SHA-256 of a record's bytes, which begin with
// the hash of the record before. The hash before revision 1 is all zeros.
type Hash [32]byte

// Position says how far a graph's log reaches, and in which opening of it.
type Position struct {
	// Opening counts the openings of the log; see NextOpening. 0: never opened.
	Opening uint64
	// Epoch names this opening for clients; zero if the log was never opened.
	Epoch Epoch
	// Revision is the newest record's, 0 while there is none.
	Revision uint64
	// Hash is the newest record's, and so stands for the whole history.
	Hash Hash
}

// Mutation is one change of one base fact. Within a record mutations apply in
// order and as sets do: inserting a present fact and deleting an absent one
// change nothing.
type Mutation struct {
	// Relation is the caller's number for the relation, stable for a graph's life.
	Relation uint32
	// Tuple is opaque here; AppendTuple makes one. At most TupleBytesMax bytes.
	Tuple []byte
	// Delete removes the fact; otherwise it is inserted.
	Delete bool
}

// Record is what one transaction leaves in the log. A record always applies,
// and replaying all of them gives the state again.
//
// Append only reads a record, and keeps none of its memory. A record that
// Replay yields belongs to the journal and is valid until the next iteration.
type Record struct {
	// Revision is the transaction's number, dense from 1.
	Revision uint64
	// TimeMillis is when the transaction was numbered, in milliseconds since
	// 1970 UTC. For people to read: nothing is decided by it.
	TimeMillis int64
	// Epoch is the opening that wrote the record. Append sets it from its own
	// head and ignores what stands here.
	Epoch Epoch
	// Drops are relations whose facts all go, before the mutations apply.
	Drops []uint32
	// Mutations are the changes of base facts, at most MutationsMax.
	Mutations []Mutation
	// Effective promises that every mutation changes the state when applied in
	// order: no insert of a present fact, no delete of an absent one. The promise
	// saves a read for each mutation and must be true, for a false one makes
	// the graph's fact count wrong and State refuse it. It is not written. Leave
	// it false when in doubt.
	Effective bool
	// Program is the graph's whole new program, opaque; nil leaves it as it is.
	Program []byte
	// Caller and IdempotencyKey name the request. With a key, a receipt is kept
	// that Idempotent finds.
	Caller         string
	IdempotencyKey string
	// RequestHash tells a repeated request from another one under the same key;
	// it is kept only with a key.
	RequestHash Hash
	// Answer is what a repeated request is answered, opaque; kept only with a key.
	Answer []byte
}

// Receipt is what is known of a request that carried an idempotency key.
type Receipt struct {
	Revision    uint64
	RequestHash Hash
	Answer      []byte // the caller's to keep
}

// Journal is a durable log of records and the state they add up to, for each of
// a set of graphs. Its methods may be called concurrently; those that change one
// graph take turns.
//
// All of them return ErrNotFound for a graph that was not created, ErrName for
// an impossible name and ErrClosed after Close, wrapped with the operation.
// What the journal writes is on disk when the method returns.
type Journal interface {
	// Graphs returns the names of all graphs, sorted.
	Graphs(ctx context.Context) ([]string, error)

	// Create makes an empty graph at revision 0, not open yet. It returns
	// ErrExists if there is one. The opening numbers of a dropped graph of the
	// same name go on rising.
	Create(ctx context.Context, graph string) error

	// Drop removes a graph with its records, facts and receipts.
	Drop(ctx context.Context, graph string) error

	// Open checks that the newest record is the one the head names, begins a new
	// opening (number and epoch) and allows Append. It returns a *DamageError if
	// the check fails and ErrExhausted if there is no number left; the graph is
	// untouched then.
	Open(ctx context.Context, graph string, now time.Time) (Position, error)

	// NextOpening begins the next opening of a graph that is open, for when the
	// publication number is full. It returns ErrNotOpen otherwise.
	NextOpening(ctx context.Context, graph string, now time.Time) (Position, error)

	// Head returns the position that the last Append or Open left.
	Head(ctx context.Context, graph string) (Position, error)

	// Program returns the program that the newest record with one set, and that
	// record's revision: nil and 0 if there is none. The bytes are the caller's.
	Program(ctx context.Context, graph string) ([]byte, uint64, error)

	// State calls visit with each current base fact, ordered by relation and
	// tuple, as inserts whose Tuple is valid during the call only. It ends with
	// a *DamageError if the facts seen are not those that the head counts: then
	// what was visited must not be used. It sees one revision throughout. An
	// error of visit ends it and is returned. It returns the program as well.
	State(ctx context.Context, graph string, visit func(Mutation) error) ([]byte, error)

	// Append writes records at the revisions head+1, head+2, ... with one
	// synced write, all or none, and returns the new head. It returns
	// ErrSequence, ErrTooLarge, ErrNotOpen and ErrFull before anything is
	// written. No records: nothing happens. ctx is looked at before the write,
	// which then runs to its end. A write that fails once it has begun ends the
	// process (see the implementation's options), for nobody knows its outcome.
	Append(ctx context.Context, graph string, records []*Record) (Position, error)

	// Replay yields the records from a revision on up to the head at the time of
	// the call, each one checked and linked to the one before. from 0 means the
	// oldest kept. A trimmed, missing or future revision yields ErrGap, damage
	// ErrCorrupt, each as *DamageError, and ends the sequence.
	Replay(ctx context.Context, graph string, from uint64) iter.Seq2[*Record, error]

	// Idempotent returns the receipt that a caller's key left, nil if it left
	// none or if it was trimmed.
	Idempotent(ctx context.Context, graph, caller, key string) (*Receipt, error)

	// Trim forgets records and receipts of revisions below before; the newest
	// record is always kept. What is left below from earlier is forgotten, too.
	Trim(ctx context.Context, graph string, before uint64) error

	// Close waits for calls in progress and releases the journal.
	Close() error
}
