package admin

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
)

//go:embed docs.html
var docsTemplate string

// docsRoute is what the page shows of a route.
type docsRoute struct {
	Method, Path, Summary, Access, Curl string
	Description                         template.HTML
	Flags                               []docsFlag
	Bodies                              []body
	Problems                            []int
	ID                                  string
}

type docsFlag struct {
	Name        string
	Description template.HTML
}

type docsSection struct {
	Tag    string
	Routes []docsRoute
}

// documentationPage renders the table as one page that loads nothing else, so
// that it works without a network.
func documentationPage(table []route, version string) ([]byte, error) {
	page, err := template.New("docs").Funcs(template.FuncMap{
		"media":   func(b body) string { return b.media },
		"example": func(b body) string { return b.example },
	}).Parse(docsTemplate)
	if err != nil {
		return nil, fmt.Errorf("documentation page: %w", err)
	}
	var sections []docsSection
	for i := range table {
		r := &table[i]
		at := slices.IndexFunc(sections, func(s docsSection) bool { return s.Tag == r.tag })
		if at < 0 {
			at = len(sections)
			sections = append(sections, docsSection{Tag: r.tag})
		}
		sections[at].Routes = append(sections[at].Routes, docsOf(r))
	}
	var out bytes.Buffer
	data := struct {
		Version  string
		Sections []docsSection
	}{version, sections}
	if err := page.Execute(&out, data); err != nil {
		return nil, fmt.Errorf("documentation page: %w", err)
	}
	return out.Bytes(), nil
}

func docsOf(r *route) docsRoute {
	d := docsRoute{
		Method: r.method, Path: r.path, Summary: r.summary, Bodies: r.bodies, ID: r.id,
		Description: marked(r.description), Access: accessOf(r.right), Problems: r.problems,
		Curl: `curl -H "Authorization: Bearer $HEDDLE_KEY" ` +
			strings.Replace(r.curl, "/", "http://127.0.0.1:4444/", 1),
	}
	for _, f := range r.flags {
		d.Flags = append(d.Flags, docsFlag{"?" + f.name, marked(f.description)})
	}
	if r.idempotent {
		d.Flags = append(d.Flags, docsFlag{
			"Idempotency-Key",
			"Header. Any text; a request repeated with it gets the first answer, writes nothing.",
		})
	}
	return d
}

func accessOf(right right) string {
	switch right {
	case rightOpen:
		return "no key"
	case rightPublic:
		return "admin key; none on the data listener"
	default:
		return "admin key"
	}
}

// marked escapes text for HTML and turns `code` into elements.
func marked(text string) template.HTML {
	var b strings.Builder
	for i, part := range strings.Split(text, "`") {
		if i%2 == 1 {
			b.WriteString("<code>" + template.HTMLEscapeString(part) + "</code>")
		} else {
			b.WriteString(template.HTMLEscapeString(part))
		}
	}
	return template.HTML(b.String())
}
