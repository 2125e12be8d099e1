package admin

import "net/http"

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

// Changes lists what an apply adds, drops and changes.
type Changes struct {
	Relations ChangeList `json:"relations"`
	Rules     ChangeList `json:"rules" doc:"Derived relations by name"`
	Views     ChangeList `json:"views"`
}

// ChangeList lists names, in the program's order.
type ChangeList struct {
	Added   []string `json:"added,omitempty"`
	Dropped []string `json:"dropped,omitempty"`
	Changed []string `json:"changed,omitempty"`
}
