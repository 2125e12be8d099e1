package engine

import (
	"fmt"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
)

// Plan says how the engine keeps a view or relation up to date.
type Plan struct {
	Of          string
	Kind        string // "view", "relation" (of facts) or "rules"
	WatchedKeys int    // of the view
	// Query is the query whose plan it is where no view needs the relation, so that
	// nothing is kept of it.
	Query string
	Sets  []dataflow.PredicateInfo // what is kept
	// Indexes are those that the plans use.
	Indexes []dataflow.IndexInfo
	Rules   []PlannedRule
	Notes   []string
	// Profiled tells that Runs, Nanos and Passed were counted.
	Profiled bool
}

// PlannedRule is a rule, or the query of a view, as it is evaluated.
type PlannedRule struct {
	dataflow.RuleInfo
	Rule string            // its text, or
	View string            // the view and part, or neither of a query
	Pos  analysis.Position // of the rule
}

// Explain says how a view or relation is kept up to date. The error wraps
// ErrUnknownRelation.
func (e *Engine) Explain(name string) (*Plan, error) {
	plan := &Plan{Of: name, Profiled: e.profiled == e.network && e.profiled != nil}
	var s dataflow.Subject
	f, isView := e.views[name]
	id, isRelation := e.relations[name]
	switch {
	case isView:
		plan.Kind, plan.WatchedKeys = "view", f.watched
		for i := range f.parts {
			s.Goals = append(s.Goals, f.parts[i].goal)
		}
	case !isRelation:
		return nil, fmt.Errorf("%q: %w", name, ErrUnknownRelation)
	default:
		s.Relation = id
		if plan.Kind = "rules"; !e.program.Relations[id].Derived {
			plan.Kind = "relation"
		}
	}
	x := e.network.Explain(s, e.goalName)
	if plan.Kind == "rules" && len(x.Rules) == 0 {
		if err := e.explainQuery(plan, &x, id); err != nil {
			return nil, err
		}
	}
	plan.Sets, plan.Indexes, plan.Notes = x.Predicates, x.Indexes, x.Notes
	for _, r := range x.Rules {
		planned := PlannedRule{RuleInfo: r}
		if plan.Query == "" && r.Clause.Rule < 0 {
			planned.View = e.goalName(r.Clause.Goal)
		}
		if r.Clause.Rule >= 0 {
			rule := &e.program.Rules[r.Clause.Rule]
			planned.Rule, planned.Pos = rule.Text, rule.Pos
		}
		plan.Rules = append(plan.Rules, planned)
	}
	return plan, nil
}

// explainQuery explains a query for all rows of a relation that no view needs.
func (e *Engine) explainQuery(plan *Plan, x **dataflow.Explanation, id analysis.RelationID) error {
	r := &e.program.Relations[id]
	q := &analysis.Query{Body: analysis.Body{Atoms: []analysis.Atom{{Relation: id}}}}
	var names []string
	for i, c := range r.Columns {
		t := analysis.Term{Var: i}
		q.Body.Atoms[0].Terms, q.Output = append(q.Body.Atoms[0].Terms, t), append(q.Output, t)
		q.Body.Variables = append(q.Body.Variables,
			analysis.Variable{Name: fmt.Sprintf("A%d", i), Type: c.Type, Nullable: c.Nullable})
		names = append(names, fmt.Sprintf("A%d", i))
	}
	plan.Query = "?" + r.Name + "(" + strings.Join(names, ", ") + ")"
	network, err := dataflow.New(dataflow.Config{
		Program: e.prepared, Symbols: &querySymbols{interner: e.symbols}, Tables: e.tables,
		Goals: []*analysis.Query{q}, Transient: true,
	})
	if err != nil {
		return err
	}
	*x = network.Explain(dataflow.Subject{Goals: []int{0}}, func(int) string { return "query" })
	return nil
}

// goalName names a part of a view.
func (e *Engine) goalName(goal int) string {
	p := e.goals[goal]
	if name := e.views[p.view].view.Parts[p.index].Name; name != "" {
		return p.view + "." + name
	}
	return p.view
}

// StartProfile begins to count what plans do, from zero. It returns false if that is
// done already. A Deploy ends it.
func (e *Engine) StartProfile() bool {
	if e.profiled == e.network {
		return false
	}
	e.profiled = e.network
	e.network.Profile(true, e.clock)
	return true
}

// EndProfile ends StartProfile.
func (e *Engine) EndProfile() {
	if e.profiled == e.network {
		e.network.Profile(false, nil)
	}
	e.profiled = nil
}

// String returns the plan for people.
func (p *Plan) String() string {
	var b strings.Builder
	switch {
	case p.Kind == "view":
		fmt.Fprintf(&b, "view %s, %s\n", p.Of, counted(p.WatchedKeys, "watched key"))
	case p.Query != "":
		fmt.Fprintf(&b, "%s is kept for no view; this is the query %s\n", p.Of, p.Query)
	case p.Kind == "relation":
		fmt.Fprintf(&b, "relation %s\n", p.Of)
	default:
		fmt.Fprintf(&b, "rules of %s\n", p.Of)
	}
	table := [][]string{}
	for _, s := range p.Sets {
		table = append(table, []string{s.Name, fmt.Sprint(s.Rows), s.What})
	}
	writeTable(&b, "\nrows\n", table)
	table = table[:0]
	for _, ix := range p.Indexes {
		table = append(table, []string{
			ix.Of + " by " + strings.Join(ix.Columns, ", "),
			counted(ix.Keys, "key"), counted(ix.Rows, "row"),
		})
	}
	writeTable(&b, "\nindexes\n", table)
	last := ""
	for i := range p.Rules {
		r := &p.Rules[i]
		if title := r.title(); title != last {
			fmt.Fprintf(&b, "\n%s\n", title)
			last = title
		}
		fmt.Fprintf(&b, "  %s\n", r.Text)
		for k := range r.Plans {
			p.writePlan(&b, &r.Plans[k], "    ", "when "+r.Plans[k].From+" comes or goes")
		}
	}
	if len(p.Notes) > 0 {
		b.WriteString("\nnotes\n")
		for _, n := range p.Notes {
			b.WriteString("  " + n + "\n")
		}
	}
	return b.String()
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r *PlannedRule) title() string {
	switch {
	case r.View != "":
		return "view " + r.View
	case r.Rule == "":
		return "the query"
	}
	return fmt.Sprintf("line %d: %s", r.Pos.Line, r.Rule)
}

func (p *Plan) writePlan(b *strings.Builder, x *dataflow.PlanInfo, indent, title string) {
	b.WriteString(indent + title)
	if p.Profiled {
		fmt.Fprintf(b, "  [%d times, %.3f ms]", x.Runs, float64(x.Nanos)/1e6)
	}
	b.WriteByte('\n')
	for _, s := range x.Steps {
		b.WriteString(indent + "  " + s.Text)
		if s.About >= 0 {
			fmt.Fprintf(b, "  ~%.3g rows", s.About)
		}
		if p.Profiled {
			fmt.Fprintf(b, "  [%d]", s.Passed)
		}
		b.WriteByte('\n')
	}
	if x.Instead != nil {
		p.writePlan(b, x.Instead, indent+"  ",
			"instead, where "+x.Driver+" has fewer rows than that")
	}
}

// writeTable writes rows of cells in columns under a title.
func writeTable(b *strings.Builder, title string, rows [][]string) {
	if len(rows) == 0 {
		return
	}
	b.WriteString(title)
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(fmt.Sprintf("%-*s  ", widths[i], cell))
		}
		b.WriteString("  " + strings.TrimRight(line.String(), " ") + "\n")
	}
}
