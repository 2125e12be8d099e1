package ingest_test

import (
	"encoding/json"
	"log/slog"
	"testing"
	"time"

	"github.com/heddle-live/heddle/host/ingest"
	"github.com/heddle-live/heddle/host/journal"
	"github.com/heddle-live/heddle/host/journal/pebble"
)

// TestRecoveryOfWhatIsRefusedNow: a program that an earlier version accepted is data.
func TestRecoveryOfWhatIsRefusedNow(t *testing.T) {
	f := start(t)
	f.apply(edges)
	const source = edges + "n(X) <- edge(X, _)\nn(Y) <- n(X), Y = X + 1, X > 0\n" +
		"never(X) <- edge(X, Y), Y = null\nview counted($x: int) := ?n($x)\n"
	if _, err := ingest.Check(source); err == nil {
		t.Fatal("the program is accepted now, and shows nothing")
	}
	f.stop()
	log, err := pebble.Open(f.dir, pebble.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	position, err := log.Open(t.Context(), "g", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, _, err := log.Program(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(text, &record); err != nil {
		t.Fatal(err)
	}
	record["source"] = source
	if text, err = json.Marshal(record); err != nil {
		t.Fatal(err)
	}
	if _, err := log.Append(t.Context(), "g", []*journal.Record{
		{Revision: position.Revision + 1, Program: text},
	}); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	f.open()
	f.write("+edge(400, 7)")
	if got := f.query("?r1(400, Y)"); got != "[400 7]" {
		t.Errorf("r1: %s", got)
	}
}
