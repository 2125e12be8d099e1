package admin

import (
	"net/http"

	"github.com/heddle-live/heddle/engine"
)

type programBody struct {
	Source string `json:"source" doc:"The whole program's text"`
}

type applyAnswer struct {
	Revision uint64  `json:"revision" doc:"Revision of the commit; of a dry run the present one"`
	Schema   uint64  `json:"schema" doc:"Number of the program in force afterwards"`
	Created  bool    `json:"created" doc:"True if the graph was created"`
	DryRun   bool    `json:"dry_run"`
	Changes  Changes `json:"changes" doc:"What the program changes"`
}

func (a *API) getProgram(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	program, err := a.service.Program(r.Context(), graph)
	if err != nil {
		return graphError(graph, err)
	}
	return writeJSON(w, http.StatusOK, program)
}

func (a *API) applyProgram(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	flags, err := queryFlags(r, a.flagsOf("apply-program"))
	if err != nil {
		return err
	}
	if flags["create"] {
		if err := CheckGraphName(graph); err != nil {
			return err
		}
	}
	source, err := readBody(w, r, a.limits.BodyBytes, limitBody)
	if err != nil {
		return err
	}
	shape, err := shapeOf(r, source)
	if err != nil {
		return err
	}
	if shape == shapeJSON {
		var text string
		err := decodeMembers(source, []string{"source"}, "", func(s *scanner, name string) error {
			return s.stringMember(name, &text)
		})
		if err != nil {
			return err
		}
		source = text
	}
	result, err := a.service.Apply(r.Context(), graph, source, ApplyOptions{
		DryRun: flags["dry_run"], AllowLoss: flags["allow_loss"], Create: flags["create"],
	})
	if err != nil {
		return graphError(graph, err)
	}
	return writeJSON(w, http.StatusOK, applyAnswer{
		Revision: result.Revision, Schema: result.Schema,
		Created: result.Created, DryRun: result.DryRun, Changes: changesOf(result.Diff),
	})
}

// flagsOf returns the flags of the route with an id, so that the table is their
// only list.
func (a *API) flagsOf(id string) []flag {
	for i := range a.routes {
		if a.routes[i].id == id {
			return a.routes[i].flags
		}
	}
	return nil
}

// Changes lists what an apply adds, drops and changes, in the programs' order.
type Changes struct {
	Relations RelationChanges `json:"relations" doc:"Base relations"`
	Rules     ChangeList      `json:"rules" doc:"Clauses by their text; changed: derived relations"`
	Views     ViewChanges     `json:"views"`
	Actions   ChangeList      `json:"actions"`
	Clock     *ClockChange    `json:"clock,omitempty" doc:"How often its row is replaced"`
}

// ClockChange tells how a clock changes.
type ClockChange = engine.ClockChange

// ChangeList lists names or texts.
type ChangeList struct {
	Added   []string `json:"added,omitempty"`
	Dropped []string `json:"dropped,omitempty"`
	Changed []string `json:"changed,omitempty"`
}

// ViewChanges is a ChangeList of views, and what becomes of their watched keys.
type ViewChanges struct {
	ChangeList
	Touched []string   `json:"touched,omitempty" doc:"As before, but they read what changes"`
	Rows    []ViewRows `json:"rows,omitempty" doc:"Where rows of watched keys enter or leave"`
}

// ViewRows counts what changes in the rows of a view's watched keys.
type ViewRows = engine.ViewRows

// RelationChanges is a ChangeList of relations; dropped ones tell what is lost.
type RelationChanges struct {
	Added   []string          `json:"added,omitempty"`
	Dropped []DroppedRelation `json:"dropped,omitempty"`
	Changed []string          `json:"changed,omitempty" doc:"Other names or types of columns"`
	Columns []ColumnChange    `json:"columns,omitempty" doc:"What becomes of those of changed ones"`
	Renamed []RenamedRelation `json:"renamed,omitempty"`
	Lost    []DroppedRelation `json:"lost,omitempty" doc:"All, dropped or changed, that lose rows"`
}

// ColumnChange tells what becomes of a column.
type ColumnChange = engine.ColumnChange

// DroppedRelation is a relation that goes, with its rows.
type DroppedRelation struct {
	Name string `json:"name"`
	Rows int    `json:"rows" doc:"Rows that are lost"`
}

// RenamedRelation is a relation that keeps its rows under another name.
type RenamedRelation struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Empty reports whether nothing changes.
func (c *Changes) Empty() bool {
	return c.Relations.Added == nil && c.Relations.Dropped == nil && c.Relations.Changed == nil &&
		c.Relations.Renamed == nil && c.Clock == nil && c.Rules.empty() &&
		c.Views.empty() && c.Views.Rows == nil && c.Actions.empty()
}

func (l *ChangeList) empty() bool { return l.Added == nil && l.Dropped == nil && l.Changed == nil }

// changesOf is the engine's difference as clients see it; nil is none.
func changesOf(d *engine.Diff) Changes {
	if d == nil {
		return Changes{}
	}
	c := Changes{
		Relations: RelationChanges{
			Added: d.AddedRelations, Changed: d.ChangedRelations, Columns: d.ChangedColumns,
		},
		Rules: ChangeList{d.AddedRules, d.DroppedRules, d.ChangedRules},
		Views: ViewChanges{
			ChangeList: ChangeList{d.AddedViews, d.DroppedViews, d.ChangedViews},
			Touched:    d.TouchedViews, Rows: d.Rows,
		},
		Actions: ChangeList{d.AddedActions, d.DroppedActions, d.ChangedActions},
		Clock:   d.Clock,
	}
	for _, r := range d.DroppedRelations {
		c.Relations.Dropped = append(c.Relations.Dropped, DroppedRelation{r.Name, r.Rows})
	}
	for _, r := range d.RenamedRelations {
		c.Relations.Renamed = append(c.Relations.Renamed, RenamedRelation{r.From, r.To})
	}
	for _, r := range d.Lost {
		c.Relations.Lost = append(c.Relations.Lost, DroppedRelation{r.Name, r.Rows})
	}
	return c
}
