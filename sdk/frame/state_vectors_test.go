package frame

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what the vectors in testdata/frames expect")

// stateVector is one file of testdata/frames: frames in the order in which a
// reader gets them and what State holds after each.
type stateVector struct {
	Comment string          `json:"comment"`
	Meta    json.RawMessage `json:"meta"` // a Meta frame, or null
	Steps   []vectorStep    `json:"steps"`
}

type vectorStep struct {
	Note  string          `json:"note,omitempty"`
	Group uint64          `json:"group"`
	Index uint64          `json:"index"`
	Frame json.RawMessage `json:"frame,omitempty"` // sent without white space
	Text  *string         `json:"text,omitempty"`  // instead of Frame, byte for byte
	Want  json.RawMessage `json:"want"`
}

func (s vectorStep) payload(t testing.TB) []byte {
	t.Helper()
	if s.Text != nil {
		return []byte(*s.Text)
	}
	var b bytes.Buffer
	if err := json.Compact(&b, s.Frame); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func readStateVectors(t testing.TB) map[string]*stateVector {
	t.Helper()
	files, err := filepath.Glob("testdata/frames/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	vectors := map[string]*stateVector{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v := &stateVector{}
		if err := json.Unmarshal(data, v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		vectors[file] = v
	}
	return vectors
}

func (v *stateVector) meta(t testing.TB) *Meta {
	t.Helper()
	if string(v.Meta) == "null" {
		return nil
	}
	m, err := ParseMeta(v.Meta)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestStateVectors(t *testing.T) {
	for file, v := range readStateVectors(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			meta, state := v.meta(t), &State{}
			for i := range v.Steps {
				step := &v.Steps[i]
				got := seen(state, meta, step, step.payload(t))
				if *update {
					step.Want = got
					continue
				}
				var want bytes.Buffer
				if err := json.Compact(&want, step.Want); err != nil {
					t.Fatal(err)
				}
				if want.String() != string(got) {
					t.Fatalf("step %d (%s)\n got %s\nwant %s", i, step.Note, got, want.String())
				}
			}
			if *update {
				writeStateVector(t, file, v)
			}
		})
	}
}

// seen applies a frame and writes what the vectors compare, members with
// nothing to say left out.
func seen(state *State, meta *Meta, step *vectorStep, payload []byte) []byte {
	f, err := ParseFrame(payload, meta)
	if err != nil {
		return []byte(`{"outcome":"error"}`)
	}
	c := state.Apply(step.Group, step.Index, f)
	b := append([]byte(`{"outcome":"`), c.Outcome.String()...)
	b = appendCounter(append(b, '"'), "revision", c.Revision)
	if c.Skipped {
		b = append(b, `,"skipped":true`...)
	}
	b = appendRows(b, "entered", c.Entered)
	b = appendRows(b, "left", c.Left)
	if len(c.Units) > 0 {
		b = append(b, `,"units":{`...)
		for _, u := range c.Units {
			b = AppendUnitStart(b, u.Name)
			b = appendRows(b, "entered", u.Entered)
			b = appendRows(b, "left", u.Left)
			if u.Removed {
				b = append(appendComma(b), `"removed":true`...)
			}
			if u.Closed != nil {
				b = AppendClosed(b, *u.Closed)
			}
			b = AppendUnitEnd(b)
		}
		b = AppendUnitsEnd(b)
	}
	if c.Closed != nil {
		b = AppendClosed(b, *c.Closed)
	}
	b = append(b, `,"state":{`...)
	for _, name := range state.Names() {
		b = AppendUnitStart(b, name)
		b = appendRows(b, "rows", state.UnitRows(name))
		if s := state.UnitStale(name); s != nil {
			b = AppendStale(b, *s)
		}
		b = AppendUnitEnd(b)
	}
	return append(b, '}', '}')
}

func appendCounter(b []byte, name string, v uint64) []byte {
	return strconv.AppendUint(append(append(append(b, `,"`...), name...), `":`...), v, 10)
}

func appendRows(b []byte, name string, rows []Row) []byte {
	if len(rows) == 0 {
		return b
	}
	b = append(append(append(appendComma(b), '"'), name...), `":[`...)
	for _, r := range rows {
		b = AppendRow(b, r)
	}
	return append(b, ']')
}

// writeStateVector writes one step after another, frame and want on a line each.
func writeStateVector(t *testing.T, file string, v *stateVector) {
	t.Helper()
	var b bytes.Buffer
	text := func(v any) []byte {
		var out bytes.Buffer
		e := json.NewEncoder(&out)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			t.Fatal(err)
		}
		return bytes.TrimSpace(out.Bytes())
	}
	b.WriteString("{\n\"comment\": ")
	b.Write(text(v.Comment))
	b.WriteString(",\n\"meta\": ")
	b.Write(text(v.Meta))
	b.WriteString(",\n\"steps\": [\n")
	for i, s := range v.Steps {
		if i > 0 {
			b.WriteString(",\n")
		}
		b.WriteString("{")
		if s.Note != "" {
			b.WriteString("\"note\": ")
			b.Write(text(s.Note))
			b.WriteString(",\n ")
		}
		b.Write(appendCounter(appendCounter(nil, "group", s.Group), "index", s.Index)[1:])
		if s.Text != nil {
			b.WriteString(",\n \"text\": ")
			b.Write(text(*s.Text))
		} else {
			b.WriteString(",\n \"frame\": ")
			b.Write(text(s.Frame))
		}
		b.WriteString(",\n \"want\": ")
		b.Write(s.Want)
		b.WriteString("}")
	}
	b.WriteString("\n]\n}\n")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
