package engine

import (
	"encoding/binary"
	"fmt"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// Outcome tells what a transaction did. Rows count net: one that goes and comes back
// counts for nothing.
type Outcome struct {
	Inserted, Deleted int // rows that were not there before; rows that are gone
	// Statements has an entry for each statement, unless there was just one of plain
	// rows.
	Statements []StatementOutcome
	// Changes are the rows that the transaction inserted and deleted, net, each once;
	// nil if there was just one statement of plain rows. They do what the
	// transaction did without asking anything.
	Changes []analysis.Op
}

// StatementOutcome tells what one statement did.
type StatementOutcome struct {
	// Rows are those of its query, for each of which its heads were written; or its
	// plain rows.
	Rows int `json:"rows" doc:"Rows of its condition, or plain rows"`
	// Inserted and Deleted are net, against what the statement found.
	Inserted int `json:"inserted" doc:"Rows that were not there before"`
	Deleted  int `json:"deleted" doc:"Rows that are gone"`
}

// TransactOptions bounds a transaction.
type TransactOptions struct {
	// Budget is how many steps, as QueryOptions counts them, each query may take, within
	// Limits.WatchNanos; 0 is no limit of either.
	Budget uint64
	// Accept, if not nil, sees what a transaction that is not plain did, and refuses it
	// with an error, which Transact returns. It must not use the engine.
	Accept func(*Outcome) error
}

// StatementError is why a statement refused its transaction.
type StatementError struct {
	Number int // from 1
	Pos    analysis.Position
	Err    error
}

func (e *StatementError) Error() string { return fmt.Sprintf("statement %d: %v", e.Number, e.Err) }

// Unwrap returns the cause.
func (e *StatementError) Unwrap() error { return e.Err }

// Plain returns the statement of plain rows.
func Plain(ops []analysis.Op) []analysis.Statement {
	return []analysis.Statement{{Ops: ops}}
}

// IsPlain reports whether statements are one of plain rows, or none.
func IsPlain(statements []analysis.Statement) bool {
	return len(statements) == 0 || len(statements) == 1 && statements[0].Query == nil
}

// Transact commits one transaction or call of an action under its revision:
// statements in order, each evaluated once, on what those before it wrote. Plain
// rows must have passed Check, and statements and parameters belong to the present
// program.
//
// An error refuses the whole transaction, and nothing of it remains. It wraps ErrFull,
// ErrBudget (see BudgetError), ErrArity or ErrType, or is a *RowErrors; with several
// statements, or with one that asks, it is a *StatementError.
func (e *Engine) Transact(revision uint64, statements []analysis.Statement,
	parameters []value.Value, opt TransactOptions,
) (Outcome, error) {
	if IsPlain(statements) {
		var ops []analysis.Op
		if len(statements) > 0 {
			ops = statements[0].Ops
		}
		inserted, deleted, err := e.Apply(revision, ops)
		return Outcome{Inserted: inserted, Deleted: deleted}, err
	}
	start := e.now()
	t := transaction{engine: e, before: e.revision, parameters: parameters, budget: opt.Budget}
	e.begin(revision)
	e.network.Mark()
	defer e.spend(start)
	for i := range statements {
		if err := t.do(&statements[i]); err != nil {
			t.takeBack()
			return Outcome{}, &StatementError{Number: i + 1, Pos: statements[i].Pos, Err: err}
		}
	}
	out := t.outcome()
	if opt.Accept != nil {
		if err := opt.Accept(&out); err != nil {
			t.takeBack()
			return Outcome{}, err
		}
	}
	e.network.Forget()
	e.applies++
	e.sweep()
	return out, nil
}

// begin makes the next changes those of a revision.
func (e *Engine) begin(revision uint64) {
	e.tendPins()
	clear(e.marks)
	e.marks = e.marks[:0]
	e.revision = revision
}

// mark is what a key was before the present transaction touched it.
type mark struct {
	key      *Key
	revision uint64
}

// refuse makes keys forget that a transaction touched them. Their rows must be back
// to what they were.
func (e *Engine) refuse(before uint64) {
	for _, m := range e.marks {
		m.key.revision = m.revision
	}
	e.begin(before)
	e.sweep()
}

// transaction is a transaction of several statements in progress.
type transaction struct {
	engine     *Engine
	before     uint64 // revision
	parameters []value.Value
	budget     uint64
	statements []StatementOutcome
	// written are the operations that changed something, in order, with their ids in
	// cells, one row after the other.
	written []analysis.Op
	cells   []value.ID
}

// do executes one statement. After an error, it may have changed something.
func (t *transaction) do(s *analysis.Statement) error {
	ops, rows := s.Ops, len(s.Ops)
	if s.Query != nil {
		var err error
		if ops, rows, err = t.resolve(s); err != nil {
			return err
		}
	}
	e := t.engine
	if err := e.internOps(ops); err != nil {
		return err
	}
	t.note(ops)
	e.change(ops)
	inserted, deleted, err := e.network.Settle()
	if err != nil {
		return named(err, e.program, e.goals)
	}
	t.statements = append(t.statements, StatementOutcome{rows, inserted, deleted})
	return nil
}

// resolve evaluates a statement's query and returns its heads for each row, the
// deletions first, so that what is deleted and inserted is there afterwards.
func (t *transaction) resolve(s *analysis.Statement) (ops []analysis.Op, rows int, err error) {
	var answer QueryResult
	if b := &s.Query.Body; len(b.Atoms)+len(b.Negations)+len(b.Comparisons)+
		len(b.Computations) == 0 {
		answer = t.constant(s.Query)
	} else if answer, err = t.engine.Query(s.Query, t.parameters, QueryOptions{
		Budget: t.budget, Cancelled: t.late(), whole: true,
	}); err != nil {
		return nil, 0, t.engine.inTime(err)
	}
	width := len(s.Query.Output)
	for _, deletes := range []bool{true, false} {
		for _, h := range s.Heads {
			if h.Delete != deletes {
				continue
			}
			for i := range answer.Count {
				row := answer.Rows[i*width : (i+1)*width]
				ops = append(ops, instantiate(&h, row))
			}
		}
	}
	return ops, answer.Count, nil
}

// late returns what tells that the next query takes too long, nil if nothing does.
func (t *transaction) late() func() bool {
	if t.budget == 0 {
		return nil
	}
	return t.engine.late()
}

// constant answers a query without a body.
func (t *transaction) constant(q *analysis.Query) QueryResult {
	answer := QueryResult{Count: 1}
	for _, term := range q.Output {
		v := term.Const
		if !term.IsConst() {
			v = t.parameters[term.Var]
		}
		answer.Rows = append(answer.Rows, v)
	}
	return answer
}

func instantiate(h *analysis.WriteHead, row []value.Value) analysis.Op {
	op := analysis.Op{Relation: h.Relation, Delete: h.Delete}
	op.Row = make([]value.Value, len(h.Terms))
	for i, term := range h.Terms {
		op.Row[i] = term.Const
		if !term.IsConst() {
			op.Row[i] = row[term.Var]
		}
	}
	return op
}

// note keeps the operations that will change something: the last one on each row, if
// it differs from what is there. The operations are interned.
func (t *transaction) note(ops []analysis.Op) {
	e := t.engine
	last := make(map[string]int, len(ops))
	keys := make([]string, len(ops))
	cells := e.cells
	var key []byte
	for i := range ops {
		id := e.relations[ops[i].Relation]
		key = appendKey(key[:0], id, cells[:len(ops[i].Row)])
		cells = cells[len(ops[i].Row):]
		keys[i] = string(key)
		last[keys[i]] = i
	}
	cells = e.cells
	for i := range ops {
		op := &ops[i]
		row := cells[:len(op.Row)]
		cells = cells[len(op.Row):]
		if last[keys[i]] != i || e.skip[i] {
			continue
		}
		table := e.tables[e.relations[op.Relation]]
		at, found := table.Find(row)
		if found = found && table.IsVisible(at); found == op.Delete {
			t.written = append(t.written, *op)
			t.cells = append(t.cells, row...)
		}
	}
}

func appendKey(dst []byte, id analysis.RelationID, row []value.ID) []byte {
	dst = binary.AppendUvarint(dst, uint64(id))
	for _, cell := range row {
		dst = binary.NativeEndian.AppendUint32(dst, uint32(cell))
	}
	return dst
}

// takeBack undoes what was written.
func (t *transaction) takeBack() {
	t.engine.network.Rollback()
	t.engine.refuse(t.before)
}

// outcome sums up a transaction whose statements are done.
func (t *transaction) outcome() Outcome {
	out := Outcome{Statements: t.statements, Changes: []analysis.Op{}}
	net := make(map[string]int, len(t.written))
	keys := make([]string, len(t.written))
	cells := t.cells
	var key []byte
	for i, op := range t.written {
		key = appendKey(key[:0], t.engine.relations[op.Relation], cells[:len(op.Row)])
		cells = cells[len(op.Row):]
		keys[i] = string(key)
		net[keys[i]]++
	}
	for i, op := range t.written {
		// Operations on one row that all change something take turns, so an even number
		// of them is none, and an odd number is the first.
		if n := net[keys[i]]; n%2 == 0 {
			continue
		}
		net[keys[i]] = 0
		out.Changes = append(out.Changes, op)
		if op.Delete {
			out.Deleted++
		} else {
			out.Inserted++
		}
	}
	return out
}
