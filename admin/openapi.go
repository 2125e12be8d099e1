package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

const apiDescription = "Heddle keeps facts, derives rules from them, and serves each viewer the " +
	"live rows of its own key.\n\n" +
	"Every error is a problem (RFC 9457, application/problem+json) with a stable `code`, a " +
	"`detail` for people, often a `hint`, and `errors`: the places that are wrong, with line and " +
	"column, or relation, row and column. An answer to a write means that it is durable."

// openAPIDocument describes the table as OpenAPI 3.1. Schemas come from the Go
// types of bodies and answers.
func openAPIDocument(table []route, version string, limits Limits) ([]byte, error) {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	document := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title: "Heddle", Version: version, Description: apiDescription,
			License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
		},
		Components: &huma.Components{
			Schemas: registry,
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"key": {Type: "http", Scheme: "bearer", Description: "The server's admin key"},
				"password": {
					Type: "http", Scheme: "basic",
					Description: "Any name, the admin key as password; for browsers and scrapers",
				},
			},
		},
	}
	problem := registry.Schema(reflect.TypeFor[Problem](), true, "")
	for i := range table {
		document.AddOperation(operation(&table[i], registry, problem, limits))
	}
	openAnswers(table, registry)
	out, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("encode the OpenAPI document: %w", err)
	}
	return append(out, '\n'), nil
}

// openAnswers lets every schema but those of requests have further members:
// clients ignore what they do not know, this server does not. No array of ours
// is ever null.
func openAnswers(table []route, registry huma.Registry) {
	requests := map[*huma.Schema]bool{}
	for _, r := range table {
		for _, b := range r.bodies {
			if b.shape != nil {
				requests[registry.Schema(reflect.TypeOf(b.shape), false, "")] = true
			}
		}
	}
	for _, s := range registry.Map() {
		if !requests[s] {
			s.AdditionalProperties = nil
		}
		neverNull(s)
	}
}

func neverNull(s *huma.Schema) {
	if s == nil {
		return
	}
	s.Nullable = false
	neverNull(s.Items)
	for _, p := range s.Properties {
		neverNull(p)
	}
	if values, ok := s.AdditionalProperties.(*huma.Schema); ok {
		neverNull(values)
	}
}

// operation describes one route.
func operation(r *route, registry huma.Registry, problem *huma.Schema,
	limits Limits,
) *huma.Operation {
	op := &huma.Operation{
		Method: r.method, Path: r.path, OperationID: r.id, Tags: []string{r.tag},
		Summary: r.summary, Description: r.description,
		Parameters: parameters(r),
		Responses:  map[string]*huma.Response{},
	}
	switch r.right {
	case rightKey:
		op.Security = []map[string][]string{{"key": {}}}
	case rightPublic: // the data listener asks for nothing
		op.Security = []map[string][]string{{"key": {}}, {}}
	case rightPage:
		op.Security = []map[string][]string{{"key": {}}, {"password": {}}}
	}
	if len(r.bodies) > 0 {
		op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{}}
		op.RequestBody.Description = fmt.Sprintf("At most %d bytes (%s).", limits.BodyBytes,
			limitBody)
		if r.id == "load-rows" {
			op.RequestBody.Description = fmt.Sprintf(
				"At most %d bytes (%s) and %d rows, plain or gzip.",
				limits.LoadBytes, limitLoad, limits.LoadRows)
		}
	}
	for _, b := range r.bodies {
		media := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}, Example: b.example}
		if b.example == "" { // bytes that nobody types
			media = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
		}
		if b.shape != nil {
			media.Schema = registry.Schema(reflect.TypeOf(b.shape), true, "")
			media.Example = json.RawMessage(b.example)
		}
		op.RequestBody.Content[b.media] = media
	}
	op.Responses[strconv.Itoa(r.status)] = success(r, registry)
	statuses := append([]int{http.StatusForbidden, http.StatusInternalServerError}, r.problems...)
	if r.right != rightOpen {
		statuses = append(statuses, http.StatusUnauthorized)
	}
	for _, status := range statuses {
		op.Responses[strconv.Itoa(status)] = &huma.Response{
			Description: http.StatusText(status),
			Content:     map[string]*huma.MediaType{"application/problem+json": {Schema: problem}},
		}
	}
	return op
}

func success(r *route, registry huma.Registry) *huma.Response {
	response := &huma.Response{Description: http.StatusText(r.status)}
	switch {
	case r.answer != nil:
		response.Content = map[string]*huma.MediaType{
			"application/json": {Schema: registry.Schema(reflect.TypeOf(r.answer), true, "")},
		}
	case r.media != "":
		text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
		response.Content = map[string]*huma.MediaType{r.media: text}
	}
	return response
}

// parameters lists what a route takes beside its body.
func parameters(r *route) []*huma.Param {
	var list []*huma.Param
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, ok := strings.CutPrefix(segment, "{"); ok {
			list = append(list, &huma.Param{
				Name: strings.TrimSuffix(name, "}"), In: "path", Required: true,
				Schema: &huma.Schema{Type: huma.TypeString},
			})
		}
	}
	for _, f := range r.flags {
		p := &huma.Param{
			Name: f.name, In: "query", Description: f.description, AllowEmptyValue: !f.number,
			Schema: &huma.Schema{Type: huma.TypeBoolean},
		}
		if f.number {
			p.Schema = &huma.Schema{Type: huma.TypeInteger, Format: "int64", Minimum: new(0.0)}
		}
		list = append(list, p)
	}
	if r.idempotent {
		most := idempotencyKeyBytesMax
		list = append(list, &huma.Param{
			Name: "Idempotency-Key", In: "header",
			Description: "Any text. A repeated request with the same key is not written again: " +
				"it gets the first answer, with `replayed`. Kept for a million revisions.",
			Schema: &huma.Schema{Type: huma.TypeString, MaxLength: &most},
		})
	}
	return list
}
