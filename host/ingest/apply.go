package ingest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/parse"
	"github.com/heddle-live/heddle/host/journal"
)

// ApplyOptions says how far Apply may go.
type ApplyOptions struct {
	DryRun    bool // only say what would change
	AllowLoss bool // drop facts that the new program has no place for
}

// Applied says what Apply did, or with DryRun would do.
type Applied struct {
	Revision  uint64 // of the commit; of the program in force if nothing changed
	Schema    uint64 // number of the program in force afterwards
	Unchanged bool   // the text is the one in force already; nothing was written
	Diff      *engine.Diff
}

// programRecord is how a program stands in the journal, as JSON:
// docs/formats/journal.md.
type programRecord struct {
	Format    int               `json:"format"`
	Schema    uint64            `json:"schema"`
	Source    string            `json:"source"`
	Relations map[string]uint32 `json:"relations"`
	Next      uint32            `json:"next_relation"`
	Orders    map[string][]int  `json:"orders,omitempty"`
}

// Versions of programRecord: the second has orders.
const (
	programFormat        = 1
	programFormatOrdered = 2
)

// relation returns the journal's number of a base relation of the program.
func (p *program) relation(name string) uint32 {
	id, ok := p.relations[name]
	if !ok {
		panic("ingest: a base relation has no number")
	}
	return id
}

// Check parses and analyses a program. Its errors are parse.Errors.
func Check(source string) (*analysis.Program, error) {
	file, err := parse.Program(source)
	if err != nil {
		return nil, err
	}
	return analysis.Analyse(file, source)
}

// Apply makes source the graph's whole program, in one commit of its own. A
// program in error (parse.Errors), one that would lose facts without AllowLoss
// (*engine.DataLossError) and the errors of Transact leave no trace.
func (l *Loop) Apply(ctx context.Context, source string, opt ApplyOptions) (Applied, error) {
	checked, err := Check(source)
	if err != nil {
		return Applied{}, err
	}
	var applied Applied
	var failed error
	if err := l.Call(ctx, func(t *Turn) {
		applied, failed = l.apply(t, checked, opt)
	}); err != nil {
		return Applied{}, err
	}
	return applied, failed
}

// apply runs in the loop, with nothing staged.
func (l *Loop) apply(t *Turn, checked *analysis.Program, opt ApplyOptions) (Applied, error) {
	old := l.program.Load()
	if old.schema > 0 && old.checked.Source == checked.Source {
		return Applied{
			Revision: old.revision, Schema: old.schema, Unchanged: true, Diff: &engine.Diff{},
		}, nil
	}
	if opt.DryRun {
		diff, err := l.engine.Preview(checked, opt.AllowLoss)
		return Applied{Revision: l.position.Revision, Schema: old.schema, Diff: diff}, err
	}
	if l.readOnly.Load() {
		return Applied{}, ErrReadOnly
	}
	next, drops := l.succeed(old, checked, l.position.Revision+1)
	seeds := seedOps(old, next)
	record, err := l.programRecord(next, drops, seeds)
	if err != nil {
		return Applied{}, err
	}
	diff, err := l.engine.Deploy(checked, opt.AllowLoss)
	if err != nil {
		return Applied{}, err
	}
	if _, _, err := l.engine.Apply(next.revision, seeds); err != nil {
		// The engine has the new program and the log has not.
		l.failure = fmt.Errorf("graph %s: seed facts: %w", l.cfg.Graph, err)
		return Applied{}, l.failure
	}
	l.records = append(l.records, record)
	durable := l.append(t.work)
	l.records = l.records[:0]
	if !durable {
		return Applied{}, ErrUnknownOutcome
	}
	l.program.Store(next)
	t = l.lend(t.work)
	l.cfg.Publisher.Deployed(t, diff)
	l.cfg.Publisher.Publish(t)
	return Applied{Revision: next.revision, Schema: next.schema, Diff: diff}, nil
}

// seedOps returns the program's seed facts if the graph never had a program.
func seedOps(old, next *program) []analysis.Op {
	if old.schema > 0 {
		return nil
	}
	ops := make([]analysis.Op, len(next.checked.Seed))
	for i, fact := range next.checked.Seed {
		ops[i] = analysis.Op{Relation: fact.Relation, Row: fact.Row}
	}
	return ops
}

// programRecord spells a commit of p with its seed facts for the journal, unless
// it is over a limit. The tuples live in the buffer of the next append.
func (l *Loop) programRecord(p *program, drops []uint32, seeds []analysis.Op) (
	*journal.Record, error,
) {
	format := programFormat
	if len(p.orders) > 0 {
		format = programFormatOrdered
	}
	text, err := json.Marshal(programRecord{
		Format: format, Schema: p.schema, Source: p.checked.Source,
		Relations: p.relations, Next: p.next, Orders: p.orders,
	})
	if err != nil {
		return nil, fmt.Errorf("program record: %w", err)
	}
	r := &journal.Record{
		Revision: p.revision, TimeMillis: l.turn.NowMilli, Program: text, Drops: drops,
	}
	l.tuples = l.tuples[:0] // nothing is staged
	for i := range seeds {
		r.Mutations = append(r.Mutations, l.mutation(p, &seeds[i]))
	}
	if err := r.Check(); err != nil {
		return nil, err
	}
	return r, nil
}

// succeed returns the program that follows p with checked in force, and the
// numbers of the relations whose facts go: those that are dropped and those
// whose columns do not fit. A relation keeps its number while it keeps its facts,
// whatever it is called: columns that are added hold null, and nulls at the end are
// not written.
func (l *Loop) succeed(p *program, checked *analysis.Program, revision uint64) (
	*program, []uint32,
) {
	next := &program{
		checked: checked, revision: revision, schema: p.schema + 1,
		relations: map[string]uint32{}, next: p.next, orders: map[string][]int{},
	}
	kept := make(map[uint32]bool)
	for i := range checked.Relations {
		r := &checked.Relations[i]
		if r.Derived {
			continue
		}
		if from, to, ok := l.engine.Keeps(checked, r); ok {
			if order := reorder(p.orders[from], to, len(r.Columns)); order != nil {
				next.orders[r.Name] = order
			}
			next.relations[r.Name] = p.relation(from)
			kept[p.relation(from)] = true
			continue
		}
		next.next++
		next.relations[r.Name] = next.next
	}
	var drops []uint32
	for _, name := range slices.Sorted(maps.Keys(p.relations)) {
		if id := p.relations[name]; !kept[id] {
			drops = append(drops, id)
		}
	}
	return next, drops
}
