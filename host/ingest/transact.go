package ingest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/journal"
)

// Transaction is one transaction or call of an action. Its statements were checked
// against Program; the loop owns what they hold from the call on.
type Transaction struct {
	Program    *analysis.Program
	Statements []analysis.Statement
	Parameters []value.Value // of the action
	// ExpectRevision, if not nil, is the revision that the graph must be at.
	ExpectRevision *uint64
	// Caller and IdempotencyKey name the request; without a key it is not
	// remembered. RequestHash tells a repetition from another request.
	Caller         string
	IdempotencyKey string
	RequestHash    [32]byte
}

// Receipt answers a durable transaction.
type Receipt struct {
	Revision uint64
	Inserted int  // rows that were not there before
	Deleted  int  // rows that are gone
	Replayed bool // the key was known; nothing was written now
	// Statements tells what each did; nil if there was just one of plain rows.
	Statements []engine.StatementOutcome
}

// receipt is a Receipt as the journal keeps it.
type receipt struct {
	Inserted   int                       `json:"inserted"`
	Deleted    int                       `json:"deleted"`
	Statements []engine.StatementOutcome `json:"statements,omitempty"`
}

// kept returns what is kept of a receipt under its key.
func (r *Receipt) kept() []byte {
	if r.Statements == nil {
		return fmt.Appendf(nil, `{"inserted":%d,"deleted":%d}`, r.Inserted, r.Deleted)
	}
	kept, err := json.Marshal(receipt{r.Inserted, r.Deleted, r.Statements})
	if err != nil {
		panic("ingest: a receipt is no JSON")
	}
	return kept
}

type receiptKey struct{ caller, key string }

// pending is a transaction on its way through the loop.
type pending struct {
	tx      Transaction
	receipt Receipt
	err     error
	progress
}

// Transact commits tx and returns when it is durable and published. Errors:
// ErrBusy, ErrClosing, ErrReadOnly, ErrProgramChanged, ErrPrecondition,
// ErrIdempotencyMismatch, ErrTooLarge and the engine's refusals leave no trace;
// ErrUnknownOutcome says that nobody knows, and a repetition under the same key
// settles it.
func (l *Loop) Transact(ctx context.Context, tx Transaction) (Receipt, error) {
	p := &pending{tx: tx, progress: progress{done: make(chan struct{})}}
	if err := l.try(item{tx: p}); err != nil {
		return Receipt{}, err
	}
	if err := l.await(ctx, &p.progress); err != nil {
		return Receipt{}, err
	}
	return p.receipt, p.err
}

// stage applies one transaction to the engine and prepares its record; a
// refused one is answered at once.
func (l *Loop) stage(ctx context.Context, p *pending) {
	p.begun.Store(true)
	staged, err := l.admit(ctx, p)
	if staged {
		return
	}
	if err != nil && l.cfg.Metrics != nil {
		l.cfg.Metrics.Refused.Add(1)
	}
	p.err = err
	close(p.done)
}

// admit returns true if p is part of the batch now, false if it is to be
// answered at once, from a receipt or with an error.
func (l *Loop) admit(ctx context.Context, p *pending) (bool, error) {
	if p.tx.IdempotencyKey != "" {
		if known, repeats, err := l.recall(ctx, p); known || repeats || err != nil {
			return repeats, err
		}
	}
	if l.readOnly.Load() {
		return false, ErrReadOnly
	}
	if p.tx.Program != l.program.Load().checked {
		return false, ErrProgramChanged
	}
	revision := l.position.Revision + uint64(len(l.records)) + 1
	if want := p.tx.ExpectRevision; want != nil && *want != revision-1 {
		return false, fmt.Errorf("%w: it is at %d, not at %d", ErrPrecondition, revision-1, *want)
	}
	began := l.cfg.Nanos()
	err := l.check(p.tx.Statements)
	l.engineNanos += l.cfg.Nanos() - began
	if err != nil {
		return false, err
	}
	mark := len(l.tuples)
	r, err := l.commit(revision, p)
	if err != nil {
		l.tuples = l.tuples[:mark]
		return false, err
	}
	p.receipt.Revision = revision
	if p.tx.IdempotencyKey != "" {
		r.Answer = p.receipt.kept()
		l.receipts[receiptKey{p.tx.Caller, p.tx.IdempotencyKey}] = len(l.staged)
	}
	l.staged = append(l.staged, p)
	l.records = append(l.records, r)
	return true, nil
}

func (l *Loop) check(statements []analysis.Statement) error {
	for i := range statements {
		if err := l.engine.Check(statements[i].Ops); err != nil {
			return err
		}
	}
	return nil
}

// commit has the engine do what p asks for, and returns its record. What the log
// would refuse does not stay in the engine.
func (l *Loop) commit(revision uint64, p *pending) (*journal.Record, error) {
	var r *journal.Record
	if engine.IsPlain(p.tx.Statements) {
		var ops []analysis.Op
		if len(p.tx.Statements) > 0 {
			ops = p.tx.Statements[0].Ops
		}
		r = l.record(revision, p, ops)
		if err := r.Check(); err != nil {
			return nil, err
		}
		before := l.cfg.Nanos()
		inserted, deleted, err := l.engine.Apply(revision, ops)
		l.engineNanos += l.cfg.Nanos() - before
		p.receipt.Inserted, p.receipt.Deleted = inserted, deleted
		// With as many changes as ops, each op changed something.
		r.Effective = inserted+deleted == len(ops)
		return r, err
	}
	before := l.cfg.Nanos()
	out, err := l.engine.Transact(revision, p.tx.Statements, p.tx.Parameters,
		engine.TransactOptions{
			Budget: l.cfg.ConditionSteps,
			Accept: func(out *engine.Outcome) error {
				r = l.record(revision, p, out.Changes)
				r.Effective = true
				return r.Check()
			},
		})
	l.engineNanos += l.cfg.Nanos() - before
	p.receipt.Inserted, p.receipt.Deleted = out.Inserted, out.Deleted
	p.receipt.Statements = out.Statements
	return r, err
}

// recall looks for an earlier request under p's key: known ones are answered
// from their receipt, repetitions within the batch join it without a record.
func (l *Loop) recall(ctx context.Context, p *pending) (known, repeats bool, err error) {
	key := receiptKey{p.tx.Caller, p.tx.IdempotencyKey}
	if i, ok := l.receipts[key]; ok {
		first := l.staged[i]
		if first.tx.RequestHash != p.tx.RequestHash {
			return false, false, ErrIdempotencyMismatch
		}
		p.receipt = first.receipt
		p.receipt.Replayed = true
		l.staged = append(l.staged, p)
		return false, true, nil
	}
	r, err := l.cfg.Journal.Idempotent(ctx, l.cfg.Graph, key.caller, key.key)
	if err != nil || r == nil {
		return false, false, err
	}
	if r.RequestHash != p.tx.RequestHash {
		return false, false, ErrIdempotencyMismatch
	}
	var kept receipt
	if err := json.Unmarshal(r.Answer, &kept); err != nil {
		return false, false, fmt.Errorf("receipt of revision %d: %w", r.Revision, err)
	}
	p.receipt = Receipt{
		Revision: r.Revision, Inserted: kept.Inserted, Deleted: kept.Deleted,
		Statements: kept.Statements, Replayed: true,
	}
	if l.cfg.Metrics != nil {
		l.cfg.Metrics.Replayed.Add(1)
	}
	return true, false, nil
}

// record spells what p comes to for the journal. The tuples live in a buffer that is
// reused after the append.
func (l *Loop) record(revision uint64, p *pending, ops []analysis.Op) *journal.Record {
	in := l.program.Load()
	r := &journal.Record{
		Revision:       revision,
		TimeMillis:     l.turn.NowMilli,
		Mutations:      make([]journal.Mutation, len(ops)),
		Caller:         p.tx.Caller,
		IdempotencyKey: p.tx.IdempotencyKey,
		RequestHash:    p.tx.RequestHash,
	}
	for i := range ops {
		op := &ops[i]
		r.Mutations[i] = l.mutation(in, op)
	}
	return r
}

// mutation spells an operation. Cells stand as the relation's columns did at first, and
// nulls at the end are left out, but for one that stands alone, so that a fact is spelled
// alike before and after its relation gets further columns or another order of them.
func (l *Loop) mutation(in *program, op *analysis.Op) journal.Mutation {
	from := len(l.tuples)
	row := op.Row
	if order := in.orders[op.Relation]; order != nil {
		row = make([]value.Value, len(order))
		for i, column := range order {
			row[i] = op.Row[column]
		}
	}
	for len(row) > 1 && row[len(row)-1].IsNull() {
		row = row[:len(row)-1]
	}
	l.tuples = journal.AppendTuple(l.tuples, row)
	return journal.Mutation{
		Relation: in.relation(op.Relation),
		Tuple:    l.tuples[from:len(l.tuples):len(l.tuples)], Delete: op.Delete,
	}
}

// answer tells the writers of the batch.
func (l *Loop) answer() {
	for i := range l.staged {
		close(l.staged[i].done)
	}
}
