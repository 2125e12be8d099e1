package admin

import (
	"errors"
	"net/http"
	"strings"

	"github.com/heddle-live/heddle/engine/analysis"
)

// graphNameBytesMax is the longest graph name.
const graphNameBytesMax = 64

type graphList struct {
	Graphs []GraphInfo `json:"graphs"`
}

type newGraph struct {
	Name string `json:"name" doc:"The graph's name" example:"shop"`
}

type graphDetail struct {
	GraphInfo
	Relations []relationInfo `json:"relations" doc:"In the program's order"`
	Views     []viewInfo     `json:"views" doc:"In the program's order"`
	Actions   []actionInfo   `json:"actions" doc:"In the program's order"`
}

type relationInfo struct {
	Name    string       `json:"name"`
	Columns []ColumnInfo `json:"columns"`
	Derived bool         `json:"derived" doc:"Defined by rules; takes no rows"`
}

type viewInfo struct {
	Name       string       `json:"name"`
	Parameters []ColumnInfo `json:"parameters" doc:"What makes a key, in order"`
	Columns    []ColumnInfo `json:"columns" doc:"The columns of its rows; none of a view with parts"`
	Parts      []partInfo   `json:"parts,omitempty" doc:"Its named parts, in order"`
	Text       string       `json:"text" doc:"As declared"`
}

type partInfo struct {
	Name    string       `json:"name"`
	Columns []ColumnInfo `json:"columns" doc:"The columns of its rows"`
}

type actionInfo struct {
	Name       string       `json:"name"`
	Parameters []ColumnInfo `json:"parameters" doc:"What makes its key, in order"`
	Text       string       `json:"text" doc:"As declared"`
}

type familyList struct {
	Families []FamilyInfo `json:"families"`
}

// CheckGraphName returns a *Problem that says what is wrong with a graph's
// name, or nil: it is one segment of a path, and nothing in it needs escaping.
func CheckGraphName(name string) error {
	good := name != "" && len(name) <= graphNameBytesMax && isLetter(name[0])
	for i := 0; good && i < len(name); i++ {
		c := name[i]
		good = isLetter(c) || isDigit(c) || c == '_' || c == '-'
	}
	if good {
		return nil
	}
	return newProblem(http.StatusBadRequest, "graph_name", "%q cannot be a graph's name",
		shortened(name)).
		withHint("a name begins with a letter and has letters, digits, _ and -, at most %d",
			graphNameBytesMax)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// graphError gives a missing graph an answer that says what to do.
func graphError(graph string, err error) error {
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	return newProblem(http.StatusNotFound, "graph_unknown", "there is no graph %q",
		shortened(graph)).
		withHint(`create it with "heddle apply %[1]s FILE", with PUT `+
			`/v1/graphs/%[1]s/program?create, `+
			`or empty with POST /v1/graphs {"name": "%[1]s"}; GET /v1/graphs lists the graphs`,
			graphExample(graph))
}

// graphExample returns graph if it is a possible name, to be used in a command.
func graphExample(graph string) string {
	if CheckGraphName(graph) == nil {
		return graph
	}
	return "NAME"
}

func (a *API) listGraphs(w http.ResponseWriter, r *http.Request) error {
	graphs, err := a.service.Graphs(r.Context())
	if err != nil {
		return err
	}
	if graphs == nil {
		graphs = []GraphInfo{}
	}
	return writeJSON(w, http.StatusOK, graphList{Graphs: graphs})
}

func (a *API) createGraph(w http.ResponseWriter, r *http.Request) error {
	var wanted newGraph
	err := a.readMembers(w, r, []string{"name"}, func(s *scanner, name string) error {
		return s.stringMember(name, &wanted.Name)
	})
	if err != nil {
		return err
	}
	if err := CheckGraphName(wanted.Name); err != nil {
		return err
	}
	err = a.service.CreateGraph(r.Context(), wanted.Name)
	if errors.Is(err, ErrExists) {
		return newProblem(http.StatusConflict, "graph_exists", "graph %q exists already",
			wanted.Name)
	}
	if err != nil {
		return err
	}
	info, err := a.service.Graph(r.Context(), wanted.Name)
	if err != nil {
		return err
	}
	w.Header().Set("Location", "/v1/graphs/"+wanted.Name)
	return writeJSON(w, http.StatusCreated, info)
}

func (a *API) getGraph(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	info, err := a.service.Graph(r.Context(), graph)
	if err != nil {
		return graphError(graph, err)
	}
	program, err := a.service.Schema(graph)
	if err != nil {
		return graphError(graph, err)
	}
	return writeJSON(w, http.StatusOK, describe(info, program))
}

func describe(info GraphInfo, program *analysis.Program) graphDetail {
	d := graphDetail{
		GraphInfo: info, Relations: []relationInfo{}, Views: []viewInfo{}, Actions: []actionInfo{},
	}
	for _, r := range program.Relations {
		d.Relations = append(d.Relations, relationInfo{r.Name, Columns(r.Columns), r.Derived})
	}
	for _, v := range program.Views {
		view := viewInfo{
			Name: v.Name, Parameters: Columns(v.Parameters), Columns: []ColumnInfo{},
			Text: strings.TrimSpace(v.Text),
		}
		for _, part := range v.Parts {
			columns := Columns(part.Query.Columns)
			if part.Name == "" {
				view.Columns = columns
				break
			}
			view.Parts = append(view.Parts, partInfo{part.Name, columns})
		}
		d.Views = append(d.Views, view)
	}
	for _, action := range program.Actions {
		d.Actions = append(d.Actions, actionInfo{
			action.Name, Columns(action.Parameters), strings.TrimSpace(action.Text),
		})
	}
	return d
}

func (a *API) dropGraph(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	if err := a.service.DropGraph(r.Context(), graph); err != nil {
		return graphError(graph, err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *API) listFamilies(w http.ResponseWriter, r *http.Request) error {
	graph := pathValue(r, "graph")
	families, err := a.service.Families(r.Context(), graph)
	if err != nil {
		return graphError(graph, err)
	}
	if families == nil {
		families = []FamilyInfo{}
	}
	for i := range families {
		if families[i].Parameters == nil {
			families[i].Parameters = []ColumnInfo{}
		}
	}
	return writeJSON(w, http.StatusOK, familyList{Families: families})
}
