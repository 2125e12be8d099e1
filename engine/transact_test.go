package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/value"
)

// write is a statement's heads: "+" or "-" and the relation, then constants (ints)
// and names of the query's output.
type write []any

// statement makes a statement that asks; output names what the heads may use.
func (b *builder) statement(parameters, output []string, heads []write, body ...lit,
) analysis.Statement {
	s := analysis.Statement{Query: b.query(parameters, output, body...)}
	for _, w := range heads {
		name := w[0].(string)
		h := analysis.WriteHead{Relation: name[1:], Delete: name[0] == '-'}
		for _, t := range w[1:] {
			term := analysis.Term{Var: -1}
			if at, ok := t.(string); ok {
				for i, o := range output {
					if o == at {
						term.Var = i
					}
				}
			} else {
				term.Const = value.OfInt(int64(t.(int)))
			}
			h.Terms = append(h.Terms, term)
		}
		s.Heads = append(s.Heads, h)
	}
	return s
}

func plain(ops ...analysis.Op) analysis.Statement { return analysis.Statement{Ops: ops} }

// wantTransact commits statements and compares the outcome, spelt
// "+inserted -deleted; rows+inserted-deleted ...; changes".
func wantTransact(t *testing.T, e *Engine, revision uint64, want string, parameters []value.Value,
	statements ...analysis.Statement,
) {
	t.Helper()
	out, err := e.Transact(revision, statements, parameters, TransactOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	got.WriteString(fmt.Sprintf("+%d -%d;", out.Inserted, out.Deleted))
	for _, s := range out.Statements {
		got.WriteString(fmt.Sprintf(" %d+%d-%d", s.Rows, s.Inserted, s.Deleted))
	}
	got.WriteString(";")
	for _, op := range out.Changes {
		sign := "+"
		if op.Delete {
			sign = "-"
		}
		got.WriteString(fmt.Sprint(" ", sign, op.Relation, op.Row))
	}
	if got.String() != want {
		t.Errorf("transaction %d: %s, want %s", revision, got.String(), want)
	}
}

func TestStatementsSeeWhatEarlierOnesWrote(t *testing.T) {
	b := hotProgram()
	e := deployed(t, b)
	apply(t, e, 1, ins("edge", 1, 2), ins("edge", 1, 3), ins("label", 1, "hot"))
	k := watch(t, e, "hot", 1)
	// Turn the hot edges around, then delete what now leads to 1, then bring one back.
	turn := b.statement(nil, []string{"X", "Y"}, []write{{"+edge", "Y", "X"}, {"-edge", "X", "Y"}},
		a("r1", "X", "Y"))
	drop := b.statement(nil, []string{"X"}, []write{{"-edge", "X", 1}}, a("edge", "X", 1))
	wantTransact(t, e, 2, "+1 -2; 2+2-2 2+0-2 3+1-0; -edge[1 2] -edge[1 3] +edge[1 4]", nil,
		turn, drop, plain(ins("edge", 1, 4), ins("label", 2, "hot"), del("label", 2, "hot")))
	wantChanges(t, e, "hot[1]@2 +(1 4) -(1 2) (1 3)")
	wantRows(t, e, k, "(1 4)")
	// An update whose rows stay what they are changes nothing.
	same := b.statement(nil, []string{"X", "Y"}, []write{{"-edge", "X", "Y"}, {"+edge", "X", "Y"}},
		a("edge", "X", "Y"))
	wantTransact(t, e, 3, "+0 -0; 1+0-0;", nil, same)
	wantChanges(t, e)
	if s := e.Stats(); s.Revision != 3 || s.Facts != 2 {
		t.Errorf("revision %d, %d facts", s.Revision, s.Facts)
	}
}

func TestOneOfManyClaimsWins(t *testing.T) {
	b := (&builder{}).base("task", "t").base("free", "t").base("claim", "t", "user")
	e := deployed(t, b)
	apply(t, e, 0, ins("task", 7), ins("free", 7))
	claim := b.statement([]string{"U", "T"}, []string{"U", "T"},
		[]write{{"+claim", "T", "U"}, {"-free", "T"}}, a("free", "T"))
	wantTransact(t, e, 1, "+1 -1; 1+1-1; -free[7] +claim[7 1]", vals(1, 7), claim)
	wantTransact(t, e, 2, "+0 -0; 0+0-0;", vals(2, 7), claim)
	wantTransact(t, e, 3, "+0 -0; 0+0-0;", vals(2, 8), claim)
	always := b.statement([]string{"U"}, []string{"U"}, []write{{"+claim", 1, "U"}})
	wantTransact(t, e, 4, "+1 -0; 1+1-0; +claim[1 9]", vals(9), always)
}

func TestARefusedTransactionLeavesNoTrace(t *testing.T) {
	b := hotProgram()
	e := deployed(t, b)
	apply(t, e, 1, ins("edge", 1, 2), ins("label", 1, "hot"))
	k := watch(t, e, "hot", 1)
	apply(t, e, 2, ins("edge", 1, 3))
	before := e.Stats()
	scan := b.statement(nil, []string{"X", "Y"}, []write{{"-edge", "X", "Y"}},
		a("edge", "X", "_"), a("edge", "_", "Y"))
	_, err := e.Transact(3, []analysis.Statement{
		plain(ins("edge", 1, 4), del("edge", 1, 2), ins("edge", 5, 5)), plain(ins("edge", 1, 2)), scan,
	}, nil, TransactOptions{Budget: 2})
	s, ok := errors.AsType[*StatementError](err)
	if !ok || s.Number != 3 || !errors.Is(err, ErrBudget) {
		t.Fatalf("%v", err)
	}
	after := e.Stats()
	if after.Facts != before.Facts || after.Revision != 2 || after.DerivedRows != before.DerivedRows {
		t.Errorf("before %+v, after %+v", before, after)
	}
	wantRows(t, e, k, "(1 2) (1 3)")
	wantChanges(t, e, "hot[1]@2 +(1 3) -()")
	if _, err := e.Transact(3, []analysis.Statement{scan}, nil, TransactOptions{Budget: 2}); err == nil {
		t.Fatal("no budget")
	}
	wantChanges(t, e)

	no := errors.New("no")
	_, err = e.Transact(3, []analysis.Statement{plain(ins("edge", 1, 9)), plain(ins("edge", 2, 9))},
		nil, TransactOptions{Accept: func(out *Outcome) error {
			if out.Inserted != 2 || len(out.Changes) != 2 {
				t.Errorf("%+v", out)
			}
			return no
		}})
	if !errors.Is(err, no) || e.Stats().Facts != before.Facts {
		t.Errorf("%v, %+v", err, e.Stats())
	}
	wantChanges(t, e)
}
