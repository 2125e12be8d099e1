package analysis

import (
	"fmt"
	"strings"
	"testing"

	"github.com/heddle-live/heddle/engine/parse"
)

// TestPrograms reads testdata/programs.txt: texts and the IR that comes of
// them. Variables are written as number and name, `_` as number alone.
func TestPrograms(t *testing.T) {
	program := mustAnalyse(t, base)
	sections(t, "testdata/programs.txt", func(t *testing.T, kind, src string) string {
		switch kind {
		case "program":
			return dumpProgram(mustAnalyse(t, src))
		case "after base":
			p := mustAnalyse(t, base+"\n"+src)
			p.Rules = p.Rules[len(program.Rules):]
			p.Views = p.Views[len(program.Views):]
			return dumpStatements(p)
		case "transaction":
			statements, err := checkTransaction(program, src)
			if err != nil {
				t.Fatal(detailOf(err))
			}
			return strings.TrimRight(dumpWrites(program, statements), "\n")
		case "query":
			q, err := analyseQuery(program, src)
			if err != nil {
				t.Fatal(detailOf(err))
			}
			return strings.TrimRight(dumpQuery(program, q), "\n")
		}
		t.Fatalf("no kind of text is called %q", kind)
		return ""
	})
}

func dumpProgram(p *Program) string {
	var b strings.Builder
	for i := range p.Relations {
		kind := "base"
		if p.Relations[i].Derived {
			kind = "derived"
		}
		fmt.Fprintf(&b, "%s %s at %d:%d\n", kind, signature(&p.Relations[i]),
			p.Relations[i].Pos.Line, p.Relations[i].Pos.Column)
	}
	return strings.TrimRight(b.String()+dumpStatements(p), "\n")
}

func dumpStatements(p *Program) string {
	var b strings.Builder
	for _, r := range p.Rules {
		fmt.Fprintf(&b, "rule %s at %d:%d\n  %s <- %s\n", r.Text, r.Pos.Line, r.Pos.Column,
			dumpAtom(p, r.Head, r.Body.Variables), dumpBody(p, r.Body))
		b.WriteString(dumpAggregates(&r))
	}
	for _, v := range p.Views {
		fmt.Fprintf(&b, "%s at %d:%d\n", v.Text, v.Pos.Line, v.Pos.Column)
		for _, part := range v.Parts {
			if part.Name != "" {
				fmt.Fprintf(&b, "  part %s\n", part.Name)
			}
			b.WriteString(dumpQuery(p, &part.Query))
		}
	}
	for _, a := range p.Actions {
		fmt.Fprintf(&b, "%s at %d:%d\n  parameters %v\n%s", a.Text, a.Pos.Line, a.Pos.Column,
			a.Parameters, dumpWrites(p, a.Statements))
	}
	if p.ClockMillis > 0 {
		fmt.Fprintf(&b, "clock every %d ms\n", p.ClockMillis)
	}
	for _, f := range p.Seed {
		fmt.Fprintf(&b, "seed %s %v\n", f.Relation, f.Row)
	}
	return strings.TrimRight(b.String(), "\n")
}

func dumpWrites(p *Program, statements []Statement) string {
	var b strings.Builder
	for _, s := range statements {
		fmt.Fprintf(&b, "  statement %s at %d:%d\n", s.Text, s.Pos.Line, s.Pos.Column)
		for _, op := range s.Ops {
			fmt.Fprintf(&b, "  %s %s %v\n", map[bool]string{true: "delete", false: "insert"}[op.Delete],
				op.Relation, op.Row)
		}
		for _, h := range s.Heads {
			fmt.Fprintf(&b, "  %s %s", map[bool]string{true: "delete", false: "insert"}[h.Delete],
				h.Relation)
			for _, t := range h.Terms {
				if t.IsConst() {
					fmt.Fprintf(&b, " %s", t.Const)
				} else {
					fmt.Fprintf(&b, " column%d", t.Var)
				}
			}
			b.WriteString("\n")
		}
		if s.Query != nil {
			b.WriteString(dumpQuery(p, s.Query))
		}
	}
	return b.String()
}

func dumpQuery(p *Program, q *Query) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  text %s\n  parameters %v\n  body %s\n  output", q.Text, q.Parameters,
		dumpBody(p, q.Body))
	for i, t := range q.Output {
		fmt.Fprintf(&b, " %s=%s:%s", q.Columns[i].Name, dumpTerm(t, q.Body.Variables), q.Columns[i].Type)
		if q.Columns[i].Nullable {
			b.WriteString("?")
		}
	}
	for _, o := range q.Order {
		fmt.Fprintf(&b, "\n  order by column %d, descending %t", o.Column, o.Descending)
	}
	if q.Limit > 0 {
		fmt.Fprintf(&b, "\n  limit %d offset %d", q.Limit, q.Offset)
	}
	return b.String() + "\n"
}

func dumpBody(p *Program, b Body) string {
	var parts []string
	for _, a := range b.Atoms {
		parts = append(parts, dumpAtom(p, a, b.Variables))
	}
	for _, a := range b.Negations {
		parts = append(parts, "!"+dumpAtom(p, a, b.Variables))
	}
	for _, c := range b.Computations {
		args := make([]string, len(c.Args))
		for i, t := range c.Args {
			args[i] = dumpTerm(t, b.Variables)
		}
		parts = append(parts, fmt.Sprintf("%s := %s(%s)", dumpTerm(Term{Var: c.Out}, b.Variables),
			c.Function.Name, strings.Join(args, ", ")))
	}
	for _, c := range b.Comparisons {
		parts = append(parts, fmt.Sprintf("%s %s %s", dumpTerm(c.Left, b.Variables),
			parse.Operator(c.Op), dumpTerm(c.Right, b.Variables)))
	}
	return strings.Join(parts, ", ")
}

var aggregateNames = map[AggregateKind]string{
	Count: "count", CountDistinct: "count_distinct", Sum: "sum", Avg: "avg", Min: "min", Max: "max",
	TopK: "top_k", TopKThreshold: "top_k_threshold", WithinRadius: "within_radius",
}

func dumpAggregates(r *Rule) string {
	var text strings.Builder
	for i, a := range r.Aggregates {
		if a.Kind != NoAggregate {
			text.WriteString(fmt.Sprintf("  column %d %s of %s K=%d threshold=%v descending=%t\n", i,
				aggregateNames[a.Kind], dumpTerm(a.Arg, r.Body.Variables), a.K, a.Threshold, a.Descending))
		}
	}
	return text.String()
}

func dumpAtom(p *Program, a Atom, variables []Variable) string {
	parts := make([]string, len(a.Terms))
	for i, t := range a.Terms {
		parts[i] = dumpTerm(t, variables)
	}
	return p.Relations[a.Relation].Name + "(" + strings.Join(parts, ", ") + ")"
}

func dumpTerm(t Term, variables []Variable) string {
	if t.IsConst() {
		return t.Const.String()
	}
	return fmt.Sprintf("%d%s", t.Var, variables[t.Var].Name)
}
