package host_test

import (
	"strings"
	"testing"
)

// TestKindsOfValues carries bytes, timestamps and null from JSON, CSV and program text
// through the journal and a restart to queries, keys and frames.
func TestKindsOfValues(t *testing.T) {
	s := startServer(t)
	s.apply(`+note(body: bytes, at: timestamp, by: string?, n: int?)
due(B, D) <- note(B, T, _, _), D = T + 60000
view of($body: bytes) := ?note($body, At, By, N)
view at($at: timestamp) := ?due(B, $at)
`)
	s.write(`{"insert":{"note":[["AP8=",1796040000000,null,7],["AP8=","2026-11-30T12:00:01Z","",null]]}}`)
	s.write(`{"program":"+note(x\"00\", t\"2026-11-30T12:00:00Z\", null, null)"}`)
	status, body := s.call("POST", "/v1/graphs/g/relations/note/rows", "text/csv",
		"body,at,by,n\n,1970-01-01T00:00:00Z,ann,\n")
	if status != 200 {
		t.Fatalf("load: %d %s", status, body)
	}
	client := s.dial("quic")
	of := s.watch(client, "g/of", "rows/AP8")
	of.until("[[AP8= 1796040000000 <nil> 7] [AP8= 1796040001000  <nil>]]")
	at := s.watch(client, "g/at/1796040060000", "rows")
	at.until("[[AA== 1796040060000] [AP8= 1796040060000]]")
	empty := s.watch(client, "g/of", "rows/~")
	empty.until("[[ 0 ann <nil>]]")
	s.write(`{"delete":{"note":[["AP8=",1796040000000,null,7]]}}`)
	of.until("[[AP8= 1796040001000  <nil>]]")
	at.until("[[AA== 1796040060000]]")

	for range 2 {
		for query, want := range map[string]string{
			`{"query":"?note(B, T, By, N), T > t\"2026-11-30T12:00:00Z\""}`: `"rows":[["AP8=",1796040001000,"",null]]`,
			`{"query":"?note(B, T, null, N)"}`:                              `"rows":[["AA==",1796040000000,null,null]]`,
			`{"query":"?note($b, T, By, N)","parameters":{"b":""}}`:         `"rows":[["",0,"ann",null]]`,
			`{"query":"?due(B, $t)","parameters":{"t":"2026-11-30T12:01:00Z"}}`: `"columns":[{"name":"B","type":"bytes"},` +
				`{"name":"D","type":"timestamp"}],"rows":[["AA==",1796040060000]]`,
		} {
			status, body := s.call("POST", "/v1/graphs/g/query", "application/json", query)
			if status != 200 || !strings.Contains(body, want) {
				t.Errorf("query %s: %d %s", query, status, body)
			}
		}
		s.stop()
		s.start()
	}
}
