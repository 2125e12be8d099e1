package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/heddle-live/heddle/engine/analysis"
)

// ClockRelation is the relation of one row, clock(second: timestamp), that the host of
// a graph with a clock replaces.
const ClockRelation = "clock"

// Diff tells how a program differs from the one before. Lists are in the order of
// the text, the next program's for what it has, else the present one's.
type Diff struct {
	// Base relations; a changed one has other names or types of columns, a renamed one
	// may have, too.
	AddedRelations   []string          `json:"added_relations,omitempty"`
	DroppedRelations []DroppedRelation `json:"dropped_relations,omitempty"`
	ChangedRelations []string          `json:"changed_relations,omitempty"`
	ChangedColumns   []ColumnChange    `json:"changed_columns,omitempty"`
	RenamedRelations []RenamedRelation `json:"renamed_relations,omitempty"`

	AddedRules   []string `json:"added_rules,omitempty"`   // texts of clauses
	DroppedRules []string `json:"dropped_rules,omitempty"` // texts of clauses
	ChangedRules []string `json:"changed_rules,omitempty"` // derived relations with other clauses

	AddedViews   []string `json:"added_views,omitempty"`
	DroppedViews []string `json:"dropped_views,omitempty"`
	ChangedViews []string `json:"changed_views,omitempty"`

	// TouchedViews are declared as before, and read something that differs.
	TouchedViews []string `json:"touched_views,omitempty"`

	AddedActions   []string `json:"added_actions,omitempty"`
	DroppedActions []string `json:"dropped_actions,omitempty"`
	ChangedActions []string `json:"changed_actions,omitempty"`

	// Clock is how the clock changes, nil if it does not.
	Clock *ClockChange `json:"clock,omitempty"`

	// Lost are the base relations that lose rows, with how many: those that a
	// *DataLossError may name.
	Lost []DroppedRelation `json:"lost,omitempty"`

	// Rows tells for each view how many rows of its watched keys enter and leave,
	// where some do. Plan does not fill it in.
	Rows []ViewRows `json:"rows,omitempty"`

	// KeptViews are evaluated as before, so that nothing of them is derived again. Plan
	// does not fill it in.
	KeptViews []string `json:"-"`

	// LostKeys are the watched keys that end because their view is dropped, or has
	// other parameters or columns.
	LostKeys []*Key `json:"-"`
}

// ViewRows counts the rows that enter and leave the results of a view's watched keys.
type ViewRows struct {
	View    string `json:"view"`
	Keys    int    `json:"keys_ended" doc:"Watched keys that end"`
	Entered int    `json:"entered" doc:"Rows that enter, of the keys that go on"`
	Left    int    `json:"left" doc:"Rows that leave, of the keys that go on"`
}

// DroppedRelation is a base relation that goes, with its rows.
type DroppedRelation struct {
	Name string `json:"name"`
	Rows int    `json:"rows"`
}

// ClockChange is how often the clock's row was and will be replaced, "" for no clock.
type ClockChange struct {
	Was string `json:"was"`
	Now string `json:"now"`
}

// RenamedRelation is a base relation that has another name from now on.
type RenamedRelation struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Empty reports whether the programs mean the same.
func (d *Diff) Empty() bool {
	return len(d.AddedRelations) == 0 && len(d.DroppedRelations) == 0 &&
		len(d.ChangedRelations) == 0 && len(d.RenamedRelations) == 0 && d.Clock == nil &&
		len(d.AddedRules) == 0 && len(d.DroppedRules) == 0 &&
		len(d.AddedViews) == 0 && len(d.DroppedViews) == 0 && len(d.ChangedViews) == 0 &&
		len(d.AddedActions) == 0 && len(d.DroppedActions) == 0 && len(d.ChangedActions) == 0
}

// DataLossError refuses a program that would lose the rows of a base relation.
type DataLossError struct {
	Relation string
	Rows     int
	Why      string // "it is not in the new program", "its columns change", ...
}

func (e *DataLossError) Error() string {
	return fmt.Sprintf("relation %q would lose its %d rows: %s", e.Relation, e.Rows, e.Why)
}

// compare returns the difference of the present program and the next, and the first
// loss of data.
func (e *Engine) compare(next *analysis.Program) (*Diff, *DataLossError) {
	old, rows, d := e.program, e.rowsOf, &Diff{}
	var loss *DataLossError
	lose := func(id analysis.RelationID, why string) {
		n, name := rows(id), old.Relations[id].Name
		if n == 0 {
			return
		}
		d.Lost = append(d.Lost, DroppedRelation{name, n})
		if loss == nil {
			loss = &DataLossError{Relation: name, Rows: n, Why: why}
		}
	}
	inherited := make([]bool, len(old.Relations))
	for i := range next.Relations {
		r := &next.Relations[i]
		if r.Derived {
			continue
		}
		id, ok := e.heir(next, r)
		if !ok {
			d.AddedRelations = append(d.AddedRelations, r.Name)
			continue
		}
		inherited[id] = true
		if from := old.Relations[id].Name; from != r.Name {
			d.RenamedRelations = append(d.RenamedRelations, RenamedRelation{from, r.Name})
		}
		if !slices.Equal(old.Relations[id].Columns, r.Columns) {
			d.ChangedRelations = append(d.ChangedRelations, r.Name)
			changes := columnChanges(r.Name, old.Relations[id].Columns, r.Columns)
			d.ChangedColumns = append(d.ChangedColumns, changes...)
			if _, why := e.misfit(id, r.Columns); why != "" {
				lose(id, why)
			}
		}
	}
	for i := range old.Relations {
		r, at := &old.Relations[i], analysis.RelationID(i)
		if r.Derived || inherited[i] {
			continue
		}
		d.DroppedRelations = append(d.DroppedRelations, DroppedRelation{r.Name, rows(at)})
		if old.ClockMillis > 0 && r.Name == ClockRelation {
			continue // nobody wrote its row
		}
		switch id, ok := next.RelationNamed(r.Name); {
		case ok && !next.Relations[id].Derived:
			lose(at, "the graph itself keeps the row of "+ClockRelation)
		case ok:
			lose(at, "rules define it in the new program")
		default:
			lose(at, "it is not in the new program")
		}
	}
	if old.ClockMillis != next.ClockMillis {
		d.Clock = &ClockChange{interval(old), interval(next)}
	}
	compareRules(d, old, next)
	compareViews(d, old, next)
	d.TouchedViews = touchedViews(old, next)
	compareActions(d, old, next)
	return d, loss
}

// heir returns the base relation of the present program that a base relation of the
// next is: the one of its name or, if there is no relation of that name, of the name
// that it had before. A clock is the heir of a clock only.
func (e *Engine) heir(next *analysis.Program, r *analysis.Relation) (analysis.RelationID, bool) {
	if r.Name == ClockRelation && next.ClockMillis > 0 && e.program.ClockMillis == 0 {
		return 0, false
	}
	id, ok := e.relations[r.Name]
	if !ok && r.Was != "" {
		id, ok = e.relations[r.Was]
	}
	return id, ok && !e.program.Relations[id].Derived
}

// interval spells how often the row of a program's clock is replaced.
func interval(p *analysis.Program) string {
	if p.ClockMillis == 0 {
		return ""
	}
	return (time.Duration(p.ClockMillis) * time.Millisecond).String()
}

// Keeps returns the name that a base relation of the next program has in the present
// one, and where its columns go, if it keeps its rows: columns that keep their names keep
// their cells, and the others are renamed where they stand. They keep their types, and
// further columns are nullable. In its rows they hold null.
func (e *Engine) Keeps(next *analysis.Program, r *analysis.Relation) (
	name string, to []int, ok bool,
) {
	id, ok := e.heir(next, r)
	if !ok {
		return "", nil, false
	}
	to, why := e.misfit(id, r.Columns)
	if why != "" {
		return "", nil, false
	}
	return e.program.Relations[id].Name, to, true
}

func compareRules(d *Diff, old, next *analysis.Program) {
	before, after := ruleTexts(old), ruleTexts(next)
	d.AddedRules = without(after, before)
	d.DroppedRules = without(before, after)
	for i := range next.Relations {
		r := &next.Relations[i]
		id, ok := old.RelationNamed(r.Name)
		if !r.Derived || !ok || !old.Relations[id].Derived {
			continue
		}
		a, b := clauses(old, id), clauses(next, analysis.RelationID(i))
		if len(without(a, b)) > 0 || len(without(b, a)) > 0 {
			d.ChangedRules = append(d.ChangedRules, r.Name)
		}
	}
}

func ruleTexts(p *analysis.Program) []string {
	var texts []string
	for i := range p.Rules {
		texts = append(texts, p.Rules[i].Text)
	}
	return texts
}

func clauses(p *analysis.Program, id analysis.RelationID) []string {
	var texts []string
	for i := range p.Rules {
		if p.Rules[i].Head.Relation == id {
			texts = append(texts, p.Rules[i].Text)
		}
	}
	return texts
}

// without returns the texts of a that are not in b.
func without(a, b []string) []string {
	in := make(map[string]bool, len(b))
	for _, s := range b {
		in[s] = true
	}
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return in[s] })
}

func compareViews(d *Diff, old, next *analysis.Program) {
	for i := range next.Views {
		v := &next.Views[i]
		switch o := old.ViewNamed(v.Name); {
		case o == nil:
			d.AddedViews = append(d.AddedViews, v.Name)
		case !survives(o, v) || !sameTexts(o, v):
			d.ChangedViews = append(d.ChangedViews, v.Name)
		}
	}
	for i := range old.Views {
		if next.ViewNamed(old.Views[i].Name) == nil {
			d.DroppedViews = append(d.DroppedViews, old.Views[i].Name)
		}
	}
}

func compareActions(d *Diff, old, next *analysis.Program) {
	for i := range next.Actions {
		a := &next.Actions[i]
		switch o := old.ActionNamed(a.Name); {
		case o == nil:
			d.AddedActions = append(d.AddedActions, a.Name)
		case o.Text != a.Text:
			d.ChangedActions = append(d.ChangedActions, a.Name)
		}
	}
	for i := range old.Actions {
		if next.ActionNamed(old.Actions[i].Name) == nil {
			d.DroppedActions = append(d.DroppedActions, old.Actions[i].Name)
		}
	}
}

// survives reports whether the keys of a view stay valid in its successor, which
// may be nil.
func survives(old, next *analysis.View) bool {
	return next != nil && sameTypes(old.Parameters, next.Parameters) &&
		slices.EqualFunc(old.Parts, next.Parts, func(a, b analysis.Part) bool {
			return a.Name == b.Name && slices.Equal(a.Query.Columns, b.Query.Columns)
		})
}

func sameTexts(old, next *analysis.View) bool {
	return slices.EqualFunc(old.Parts, next.Parts, func(a, b analysis.Part) bool {
		return a.Query.Text == b.Query.Text
	})
}

func sameTypes(a, b []analysis.Column) bool {
	return slices.EqualFunc(a, b, func(x, y analysis.Column) bool { return x.Type == y.Type })
}
