package frame

import (
	"encoding/json"
	"os"
	"regexp"
	"testing"
)

// The frames that the manual shows are byte for byte what this package writes.
func TestManualShowsWhatIsWritten(t *testing.T) {
	manual, err := os.ReadFile("../../docs/formats/views.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?m)^```(json|meta|progress)\n(.*)\n```$")
	blocks := block.FindAllSubmatch(manual, -1)
	if len(blocks) < 10 {
		t.Fatalf("only %d blocks found", len(blocks))
	}
	for _, b := range blocks {
		kind, text := string(b[1]), b[2]
		var written []byte
		switch kind {
		case "json":
			f, err := ParseFrame(text, manualMeta(t, text))
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			written = appendFrame(nil, f)
		case "meta":
			m, err := ParseMeta(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			written = AppendMeta(nil, m)
		case "progress":
			p, err := ParseProgress(text)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			written = AppendProgress(nil, p)
		}
		if string(written) != string(text) {
			t.Errorf("the manual shows\n%s\nbut written is\n%s", text, written)
		}
	}
}

// manualMeta gives types to the one frame of the manual that needs them: only
// by its column is a large int told from a string, and null allowed.
func manualMeta(t *testing.T, text []byte) *Meta {
	t.Helper()
	var f struct{ Snapshot [][]any }
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	if len(f.Snapshot) > 0 && len(f.Snapshot[0]) == 6 {
		return &Meta{View: "v", Columns: []Column{
			{Name: "n", Type: Int},
			{Name: "f", Type: Float},
			{Name: "s", Type: String},
			{Name: "b", Type: Bool},
			{Name: "d", Type: BytesType},
			{Name: "t", Type: TimestampType, Nullable: true},
		}}
	}
	return nil
}
