package ingest_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/heddle-live/heddle/engine"
	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
	"github.com/heddle-live/heddle/host/ingest"
)

// swap is a statement that turns the edges from $x around, one more if there are any.
func swap(program *analysis.Program) analysis.Statement {
	edge, _ := program.RelationNamed("edge")
	parameter := analysis.Column{Name: "x", Type: value.Int}
	return analysis.Statement{
		Heads: []analysis.WriteHead{
			{Relation: "edge", Terms: []analysis.Term{{Var: 1}, {Var: 0}}},
			{Relation: "edge", Delete: true, Terms: []analysis.Term{{Var: 0}, {Var: 1}}},
		},
		Query: &analysis.Query{
			Parameters: []analysis.Column{parameter},
			Body: analysis.Body{
				Atoms: []analysis.Atom{{Relation: edge, Terms: []analysis.Term{{Var: 0}, {Var: 1}}}},
				Variables: []analysis.Variable{
					{Name: "x", Type: value.Int}, {Name: "Y", Type: value.Int},
				},
			},
			Output:  []analysis.Term{{Var: 0}, {Var: 1}},
			Columns: []analysis.Column{parameter, {Name: "Y", Type: value.Int}},
		},
	}
}

func (f *fixture) swap(x int64, key string) (ingest.Receipt, error) {
	program := f.loop.Program()
	return f.loop.Transact(f.t.Context(), ingest.Transaction{
		Program: program, Statements: []analysis.Statement{swap(program)},
		Parameters: []value.Value{value.OfInt(x)}, Caller: "c", IdempotencyKey: key,
	})
}

func TestStatementsAreRecordedAsWhatTheyDid(t *testing.T) {
	f := start(t)
	f.apply(edges)
	f.write("+edge[(1, 2), (1, 3), (4, 4)]")
	for i := range 2 { // the second is answered from the first one's receipt
		r, err := f.swap(1, "k")
		want := ingest.Receipt{
			Revision: 3, Inserted: 2, Deleted: 2, Replayed: i > 0,
			Statements: []engine.StatementOutcome{{Rows: 2, Inserted: 2, Deleted: 2}},
		}
		if err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%+v, %v, want %+v", r, err, want)
		}
	}
	if r, err := f.swap(4, ""); err != nil || r.Revision != 4 || r.Inserted+r.Deleted != 0 ||
		r.Statements[0].Rows != 1 {
		t.Errorf("an edge from a node to itself: %+v, %v", r, err)
	}
	if r, err := f.swap(99, ""); err != nil || r.Revision != 5 || r.Statements[0].Rows != 0 {
		t.Errorf("no edge: %+v, %v", r, err)
	}
	const want = "[2 1 3 1 4 4]"
	if got := f.query("?edge(X, Y)"); got != want {
		t.Errorf("rows %s", got)
	}
	f.restart()
	if got := f.query("?edge(X, Y)"); got != want || f.loop.Revision() != 5 {
		t.Errorf("rows after a restart: %s at %d", got, f.loop.Revision())
	}
	if r, err := f.swap(1, "k"); err != nil || !r.Replayed || r.Statements[0].Rows != 2 {
		t.Errorf("after a restart: %+v, %v", r, err)
	}
}

func TestExpectedRevision(t *testing.T) {
	f := start(t)
	f.apply(edges)
	expect := func(revision uint64, text string) (ingest.Receipt, error) {
		tx := f.transaction(text)
		tx.ExpectRevision = &revision
		return f.loop.Transact(t.Context(), tx)
	}
	for _, wrong := range []uint64{0, 2} {
		if _, err := expect(wrong, "+edge(1, 2)"); !errors.Is(err, ingest.ErrPrecondition) {
			t.Errorf("at 1, expected %d: %v", wrong, err)
		}
	}
	if r, err := expect(1, "+edge(1, 2)"); err != nil || r.Revision != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	// Of many that expect the same revision, whatever batches they share, one wins.
	won := make(chan int, 32)
	for i := range cap(won) {
		tx := f.transaction(fmt.Sprintf("+edge(5, %d)", i))
		tx.ExpectRevision = new(uint64(2))
		go func() {
			_, err := f.loop.Transact(t.Context(), tx)
			if err != nil && !errors.Is(err, ingest.ErrPrecondition) {
				t.Error(err)
			}
			if err == nil {
				won <- 1
			} else {
				won <- 0
			}
		}()
	}
	sum := 0
	for range cap(won) {
		sum += <-won
	}
	if sum != 1 || f.loop.Revision() != 3 {
		t.Errorf("%d won, revision %d", sum, f.loop.Revision())
	}
}
