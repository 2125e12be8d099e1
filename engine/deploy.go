package engine

import (
	"fmt"
	"slices"

	"github.com/heddle-live/heddle/engine/analysis"
	"github.com/heddle-live/heddle/engine/dataflow"
	"github.com/heddle-live/heddle/engine/relation"
	"github.com/heddle-live/heddle/engine/value"
)

// Plan tells what Deploy would do, without doing it. If it would lose data the
// diff comes together with a *DataLossError.
func (e *Engine) Plan(p *analysis.Program) (*Diff, error) {
	d, loss := e.compare(p)
	for _, f := range e.families {
		if !survives(f.view, p.ViewNamed(f.view.Name)) {
			d.LostKeys = append(d.LostKeys, f.watchedKeys()...)
		}
	}
	if loss != nil {
		return d, loss
	}
	return d, nil
}

// rowsOf returns the number of rows of a base relation.
func (e *Engine) rowsOf(id analysis.RelationID) int { return e.tables[id].Len() }

func (f *family) watchedKeys() []*Key {
	var keys []*Key
	for _, u := range f.parts[0].units {
		if u != nil {
			keys = append(keys, u.key)
		}
	}
	return keys
}

// Deploy replaces the program. Base relations that keep their name, or tell the one that
// they had, and fit their columns keep their rows; see Keeps. Keys of views that keep the
// types of their parameters and their columns stay watched, and Changes tells how their
// rows differ; the keys of other views are dead, and returned in the diff. Keys of views
// whose evaluation stays the same are left as they are.
//
// A change that would lose rows returns a *DataLossError together with the diff
// unless allowLoss is set. Other errors wrap ErrFull or a *BudgetError of GraphRows.
// After an error nothing is changed. The seed facts of the program are not applied: they are a
// transaction like any other. For Changes a Deploy is the commit that follows the
// last applied one.
func (e *Engine) Deploy(p *analysis.Program, allowLoss bool) (*Diff, error) {
	if e.program == nil {
		e.program = &analysis.Program{}
	}
	d, err := e.Plan(p)
	if err != nil && !allowLoss {
		return d, err
	}
	n, err := e.prepare(p, d)
	if err != nil {
		return nil, err
	}
	d.KeptViews = n.keptViews()
	for _, k := range d.LostKeys {
		e.forget(k)
	}
	keys := e.keepBaselines(n)
	n.network.TakeOver()
	e.leave(e.network, e.tables, n.tables)
	e.compiled.forget()
	n.keepFamilies()
	e.revision++
	e.program, e.prepared, e.network, e.tables = p, n.prepared, n.network, n.tables
	e.families, e.goals = n.families, n.goals
	n.network.KeepIndexes()
	e.relations = make(map[string]analysis.RelationID, len(p.Relations))
	for i := range p.Relations {
		e.relations[p.Relations[i].Name] = analysis.RelationID(i)
	}
	e.views = make(map[string]*family, len(e.families))
	for _, f := range e.families {
		e.views[f.view.Name] = f
	}
	n.inForce = true
	e.rewatch(keys, n, d)
	return d, nil
}

// Preview tells what Deploy would do, as Plan does, and how many rows of watched
// keys would enter and leave. It takes as long as Deploy.
func (e *Engine) Preview(p *analysis.Program, allowLoss bool) (*Diff, error) {
	d, err := e.Plan(p)
	if err != nil && !allowLoss {
		return d, err
	}
	n, err := e.prepare(p, d)
	if err != nil {
		return d, err
	}
	d.KeptViews = n.keptViews()
	e.countRows(n, d)
	e.giveUp(n)
	return d, nil
}

// giveUp lets a program go that does not come into force.
func (e *Engine) giveUp(n *next) {
	if n.network != nil {
		n.network.GiveBack()
	}
	e.leave(n.network, n.tables, e.tables)
	if e.network != nil {
		e.network.KeepIndexes()
	}
}

// next is a program that is ready to come into force, with the results of the keys
// that stay watched.
type next struct {
	prepared *dataflow.Prepared
	network  *dataflow.Network
	tables   []*relation.Relation
	families []*family
	goals    []*part
	inForce  bool // its results are told
	// kept are the present families, by name, whose keys and results stay as they are.
	kept map[string]*family
}

// keeps reports whether a present family stays as it is.
func (n *next) keeps(f *family) bool { return n.kept[f.view.Name] != nil }

func (n *next) keptViews() []string {
	var names []string
	for _, f := range n.families {
		if n.keeps(f) {
			names = append(names, f.view.Name)
		}
	}
	return names
}

// keepFamilies puts the families that stay in the place of those that were made for
// their views.
func (n *next) keepFamilies() {
	for i, f := range n.families {
		old := n.kept[f.view.Name]
		if old == nil {
			continue
		}
		old.view = f.view
		for k := range old.parts {
			p := &old.parts[k]
			p.goal = f.parts[k].goal
			n.goals[p.goal] = p
		}
		n.families[i] = old
	}
}

// prepare makes everything that a program needs to come into force, while the present
// one stays.
func (e *Engine) prepare(p *analysis.Program, d *Diff) (*next, error) {
	n := &next{
		tables: e.carryTables(p), prepared: dataflow.Prepare(p), kept: make(map[string]*family),
	}
	var err error
	n.network, err = dataflow.New(dataflow.Config{
		Program: n.prepared, Symbols: mainSymbols{e.symbols}, Uses: e.symbols,
		Tables: n.tables, Goals: goals(p), Replaces: e.replaces(p),
		OnResult: func(goal int, row relation.RowID) {
			if n.inForce {
				e.resultChanged(goal, row)
			}
		},
	})
	if err == nil {
		for i := range p.Views {
			f := n.addFamily(&p.Views[i])
			if n.network.Keeps(f.parts[0].goal) {
				n.kept[f.view.Name] = e.views[f.view.Name]
			}
		}
		err = e.demandAgain(n, p, d)
	}
	if err != nil {
		e.giveUp(n)
		return nil, fmt.Errorf("deploy: %w", err)
	}
	return n, nil
}

// replaces tells the next network which goals may go on where those of the present
// one are.
func (e *Engine) replaces(p *analysis.Program) *dataflow.Replaces {
	if e.network == nil {
		return nil
	}
	r := &dataflow.Replaces{Network: e.network}
	for i := range p.Views {
		f := e.views[p.Views[i].Name]
		for k := range p.Views[i].Parts {
			goal := -1
			if f != nil && survives(f.view, &p.Views[i]) {
				goal = f.parts[k].goal
			}
			r.Goals, r.Views = append(r.Goals, goal), append(r.Views, i)
		}
	}
	return r
}

// demandAgain asks the next network for the keys that stay watched and that it has
// not taken over.
func (e *Engine) demandAgain(n *next, p *analysis.Program, d *Diff) error {
	lost := make(map[*family]bool)
	for _, k := range d.LostKeys {
		lost[k.family] = true
	}
	for _, f := range e.families {
		if lost[f] || n.keeps(f) {
			continue
		}
		for _, g := range n.goals {
			if g.view != f.view.Name {
				continue
			}
			for _, k := range f.watchedKeys() {
				n.network.Demand(g.goal, k.ids)
			}
		}
	}
	n.network.Limits(e.graphBounds())
	if _, _, err := n.network.Settle(); err != nil {
		return named(err, p, n.goals)
	}
	n.network.Limits(e.bounds(0))
	return nil
}

// goals returns the queries of all parts of all views, in order.
func goals(p *analysis.Program) []*analysis.Query {
	var goals []*analysis.Query
	for i := range p.Views {
		goals = append(goals, queries(&p.Views[i])...)
	}
	return goals
}

func queries(v *analysis.View) []*analysis.Query {
	queries := make([]*analysis.Query, len(v.Parts))
	for i := range v.Parts {
		queries[i] = &v.Parts[i].Query
	}
	return queries
}

// carryTables returns the tables of the next program's base relations: the present
// ones where they survive, empty ones elsewhere.
func (e *Engine) carryTables(p *analysis.Program) []*relation.Relation {
	tables := make([]*relation.Relation, len(p.Relations))
	for i := range p.Relations {
		r := &p.Relations[i]
		if r.Derived {
			continue
		}
		if id, ok := e.heir(p, r); ok {
			if to, why := e.misfit(id, r.Columns); why == "" {
				tables[i] = e.carried(e.tables[id], to, len(r.Columns))
				continue
			}
		}
		tables[i] = e.newTable(len(r.Columns))
	}
	return tables
}

func (e *Engine) newTable(arity int) *relation.Relation {
	table := relation.New(arity, 0)
	table.Retain(e.symbols)
	return table
}

// keepBaselines notes for every living key what was last told of it, since the
// rows that know it go with the network, and returns the keys: those with
// unreported changes first, in their order. Families that stay are left alone.
func (e *Engine) keepBaselines(n *next) []*Key {
	var keys []*Key
	for _, k := range e.touched {
		if k != nil && !n.keeps(k.family) {
			keys = append(keys, k)
		}
	}
	for _, f := range e.families {
		if n.keeps(f) {
			continue
		}
		for _, k := range f.watchedKeys() {
			if !k.dead && k.listed == 0 {
				keys = append(keys, k)
			}
		}
	}
	for _, k := range keys {
		for i := range k.Parts() {
			u := k.unitOf(i)
			if u.baseline == nil {
				told := e.outputIDs(u)
				e.setBaseline(u, &told)
			}
			u.rows, u.pending, u.kept = nil, 0, false
		}
	}
	return keys
}

// setBaseline notes what was told last of a unit, and how many units have such a note.
func (e *Engine) setBaseline(u *unit, told *[]value.ID) {
	if u.baseline != nil {
		e.baselines--
	}
	if u.baseline = told; told != nil {
		e.baselines++
	}
}

// outputIDs returns the rows of a unit as they are told, in ids.
func (e *Engine) outputIDs(u *unit) []value.ID {
	p := u.part
	flat := make([]value.ID, 0, len(u.rows)/p.width*len(p.outputs))
	for at := 0; at < len(u.rows); at += p.width {
		for _, o := range p.outputs {
			cell := o.cell
			switch o.from {
			case fromCell:
				cell = u.rows[at+o.at]
			case fromParameter:
				cell = u.key.ids[o.at]
			case fromConstant:
			}
			flat = append(flat, cell)
		}
	}
	return flat
}

// rewatch takes the keys into the network that came into force and holds their
// results. Keys whose result is what was told last are then as if just watched; the
// others are touched, and counted in the diff.
func (e *Engine) rewatch(keys []*Key, n *next, d *Diff) {
	isQuiet := e.keepUnreported(n)
	for _, k := range keys {
		before := *k.family
		k.join(e.views[k.family.view.Name])
		k.listed = 0
		for i := range k.Parts() { // what was told of it
			k.family.parts[i].doubt = max(k.family.parts[i].doubt, before.parts[i].doubt)
		}
		e.demand(k)
	}
	e.silent = true
	for goal, p := range e.goals {
		if n.kept[p.view] != nil {
			continue
		}
		table := e.network.Result(goal)
		for row, ok := table.NextVisible(0); ok; row, ok = table.NextVisible(row + 1) {
			e.resultChanged(goal, row)
		}
	}
	e.silent = false
	e.lookAtDoubts()
	for _, k := range keys {
		e.takeAll(k)
	}
	if isQuiet {
		e.dropReported()
	}
	e.touchChanged(keys, d)
}

// keepUnreported forgets what is unreported but for that of families that stay, and
// reports whether there is nothing of it.
func (e *Engine) keepUnreported(n *next) bool {
	e.touched = slices.DeleteFunc(e.touched, func(k *Key) bool {
		return k == nil || !n.keeps(k.family)
	})
	e.holes = 0
	for i, k := range e.touched {
		k.listed = i + 1
	}
	e.kept = slices.DeleteFunc(e.kept, func(u *unit) bool { return !u.kept || u.key.dead })
	if len(e.touched)+len(e.kept) == 0 {
		e.pending, e.kept, e.keptRows = nil, nil, 0
	}
	return len(e.touched) == 0
}

// touchChanged touches the keys whose result is not what was told last, and counts the
// rows.
func (e *Engine) touchChanged(keys []*Key, d *Diff) {
	count := newRowCount(d)
	for _, k := range keys {
		for i := range k.Parts() {
			u := k.unitOf(i)
			if u.part.doubt == Stale {
				continue // it keeps what was told
			}
			now, old := e.outputIDs(u), *u.baseline
			if slices.Equal(now, old) {
				e.setBaseline(u, nil)
				continue
			}
			e.touch(k)
			view := count.of(k.View())
			e.compareRows(len(u.part.outputs), now, old, func(entered bool, _ []value.ID) {
				view.add(entered)
			})
		}
	}
	count.finish()
}

// diffBaseline collects how a unit's rows differ from its baseline.
func (e *Engine) diffBaseline(u *unit, c *Change) {
	now, old := e.outputIDs(u), *u.baseline
	e.setBaseline(u, nil)
	c.Insert, c.Retract = c.Insert[:0], c.Retract[:0]
	e.compareRows(len(u.part.outputs), now, old, func(entered bool, row []value.ID) {
		if entered {
			c.Insert = e.appendCells(c.Insert, row)
		} else {
			c.Retract = e.appendCells(c.Retract, row)
		}
	})
}

// compareRows calls yield for each row that is in only one of two sorted lists.
func (e *Engine) compareRows(width int, now, old []value.ID,
	yield func(entered bool, row []value.ID),
) {
	for len(now) > 0 || len(old) > 0 {
		order := 0
		switch {
		case len(now) == 0:
			order = 1
		case len(old) == 0:
			order = -1
		default:
			order = e.compareCells(now[:width], old[:width])
		}
		if order < 0 {
			yield(true, now[:width])
		}
		if order > 0 {
			yield(false, old[:width])
		}
		if order <= 0 {
			now = now[width:]
		}
		if order >= 0 {
			old = old[width:]
		}
	}
}

func (e *Engine) compareCells(a, b []value.ID) int {
	for i := range a {
		if a[i] != b[i] {
			return e.symbols.Compare(a[i], b[i])
		}
	}
	return 0
}

func (e *Engine) appendCells(dst []value.Value, cells []value.ID) []value.Value {
	for _, c := range cells {
		dst = append(dst, e.symbols.Value(c))
	}
	return dst
}
