// Package config holds the one Config of the process: defaults, then a TOML
// file, then the environment, then flags. It alone reads files and the
// environment for settings; every part gets its own small struct from whoever
// calls Load, and never the whole Config.
package config

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Groups of settings, for commands that need only some of them.
const (
	GroupServer = "server" // where serve keeps its data, listens and logs
	GroupLimits = "limits" // what serve accepts and keeps
	GroupClient = "client" // where the commands that talk to a server find it
)

// Config is every setting there is. A field's name gives its three spellings:
// QueueTransactions is queue_transactions in the file, HEDDLE_QUEUE_TRANSACTIONS
// in the environment and --queue-transactions as a flag. Tags hold the default,
// the limits, the flag's help, and the group, for the fields that follow as well;
// the comment is its text in docs/config.md.
//
// None of them changes while the process runs. The zero Config is not valid;
// Default is.
type Config struct {
	// DataDir is the directory of the journal. It is made if it is missing, and
	// only one process may use it at a time.
	DataDir string `group:"server" default:"heddle-data" check:"filled" help:"directory of the journal"`
	// DataListen is where viewers connect: host and port, UDP and TCP alike. This
	// release serves loopback only. Port 0 takes a free one.
	DataListen string `default:"127.0.0.1:4443" check:"loopback" help:"address for viewers"`
	// AdminListen is where the REST API listens: host and port, TCP. This release
	// serves loopback only. It differs from data_listen; port 0 takes a free one.
	AdminListen string `default:"127.0.0.1:4444" check:"loopback" help:"address of the REST API"`
	// AdminKey is the key that every request to the REST API must carry. If it is
	// empty, a random one is made at the first start and kept in the file
	// admin.key of the data directory, readable by its owner only. A flag can be
	// seen by other users of the machine: the environment or the file is better.
	AdminKey string `default:"" check:"key" secret:"yes" help:"key of the REST API"`
	// LogLevel is the least severe level that is logged.
	LogLevel string `default:"info" oneof:"debug info warn error" help:"least level logged"`
	// LogFormat is how log lines are written to standard error.
	LogFormat string `default:"text" oneof:"text json" help:"spelling of log lines"`

	// BodyBytes is the largest body of a request, a load aside. A larger one is
	// answered 413.
	BodyBytes Bytes `group:"limits" default:"1MiB" min:"1KiB" max:"64MiB" help:"largest body of a request"`
	// LoadBytes is the largest body of a load, after decompression. It is one
	// transaction, and is held in memory. A larger one is answered 413.
	LoadBytes Bytes `default:"256MiB" min:"1MiB" max:"1GiB" help:"largest body of a load"`
	// QueueTransactions is how many transactions may wait for one graph's loop. The
	// next one is answered 429.
	QueueTransactions int `default:"1024" min:"1" max:"65536" help:"transactions waiting for a graph"`
	// BatchTransactions is how many transactions one graph's loop takes at once:
	// they share one synced write.
	BatchTransactions int `default:"256" min:"1" max:"4096" help:"transactions of one batch"`
	// QueryRows is how many rows a query returns unless it asks for fewer. Its
	// answer says when there were more.
	QueryRows int `default:"10000" min:"1" max:"1000000" help:"most rows of a query"`
	// QueryDeadline is how long a query may take unless it asks for less.
	QueryDeadline time.Duration `default:"5s" min:"10ms" max:"1m" help:"longest query"`
	// QuerySteps is how much work a query may be: with the default about a second on a
	// server of 2026, at worst. A long query works in slices of 40 microseconds between
	// the commits, as of the revision at which it began, so it holds up no writer. For
	// the conditions of a transaction, which cannot be cut, the limit is watch_steps. A
	// row that is looked up is a step, one that is derived is two more, and eight rows of
	// a scan are one; a computation is a step, and one more for each 64 bytes of text
	// that it reads or makes.
	QuerySteps int `default:"8000000" min:"1000" max:"1000000000" help:"most steps of a query"`
	// WatchSteps is how many steps the first rows of a watched key, or a condition in a
	// transaction, may take, counted as query_steps counts them. They are computed
	// between two commits or within one, so this bounds how long they hold up writers,
	// besides watch_time. The viewer of a key over it is told that it is too expensive,
	// and such a transaction is refused.
	WatchSteps int `group:"limits" default:"800000" min:"1000" max:"1000000000" help:"steps for a key's first rows"`
	// WatchTime is how long the first rows of a watched key, or a condition in a
	// transaction, may take to compute, whatever their steps come to: values can be long,
	// memory slow and the machine busy. A key over it may hold up writers for as long
	// again while what was computed is taken back. The outcome is that of watch_steps.
	WatchTime time.Duration `default:"100ms" min:"10ms" max:"1m" help:"time for a key's first rows"`
	// CommitRows is how many rows the rules may derive for one transaction, one query
	// or the first rows of one watched key, counted as often as they are derived. What
	// needs more is refused, names the rule, and leaves no trace.
	CommitRows int `default:"1000000" min:"1000" max:"1000000000" help:"rows derived at once"`
	// GraphRows is how many derived rows one graph keeps for its watched keys. What
	// would keep more is refused, and names the rule.
	GraphRows int `default:"20000000" min:"1000" max:"4000000000" help:"derived rows of a graph"`
	// CommitBytes is how much new values that rules compute, such as joined texts, may
	// take for one transaction, one query or the first rows of one watched key. What
	// needs more is refused, names the rule, and leaves no trace.
	CommitBytes Bytes `default:"256MiB" min:"1MiB" max:"1TiB" help:"values computed at once"`
	// GraphBytes is how much all values of one graph may take while rules compute new
	// ones: texts count with their length and other values with 32 bytes, each once, the
	// values of facts as well. What would compute a new one past that is refused, and
	// names the rule; facts are not.
	GraphBytes Bytes `default:"4GiB" min:"1MiB" max:"16TiB" help:"values computed of a graph"`
	// KeysMax is how many keys of one graph's views may be watched. The viewer of
	// a further one is refused as busy.
	KeysMax int `default:"1000000" min:"1" max:"100000000" help:"keys watched of a graph"`
	// SessionsMax is how many viewers may be connected. The next one is refused.
	SessionsMax int `default:"20000" min:"1" max:"1000000" help:"most connected viewers"`
	// RequestStreamsMax is how many request streams one session may have open.
	// A viewer needs one or two for each key it watches.
	RequestStreamsMax int `default:"4096" min:"16" max:"65536" help:"streams of a session"`
	// SubscriptionsPerSession is how many keys one session may watch. The next
	// subscription is reset.
	SubscriptionsPerSession int `default:"4096" min:"1" max:"65536" help:"keys of a session"`
	// LingerKey is how long a key stays watched after its last viewer has left, so
	// that a page that is loaded again finds it as it was.
	LingerKey time.Duration `default:"2s" min:"0s" max:"10m" help:"time a key outlives viewers"`
	// SnapshotPartBytes is the size at which a snapshot is cut into parts.
	SnapshotPartBytes Bytes `default:"256KiB" min:"1KiB" max:"1MiB" help:"size of a snapshot's parts"`
	// TrackMaxLatency is what tracks tell relays and clients: for how long a group
	// that is finished is of use.
	TrackMaxLatency time.Duration `default:"1s" min:"10ms" max:"1m" help:"use of a finished group"`
	// FreeSpaceFloorBytes is how much of the data directory's file system stays
	// free: below it graphs are read-only, and viewers are served still. 0 turns
	// the floor off.
	FreeSpaceFloorBytes Bytes `default:"256MiB" min:"0B" max:"1TiB" help:"disk space left free"`
	// JournalRecords is how many records, and receipts of idempotency keys, each
	// graph keeps: those of its newest revisions.
	JournalRecords int `default:"1000000" min:"1000" max:"1000000000" help:"records kept of a graph"`

	// Server is the REST API that the client commands talk to.
	Server string `group:"client" default:"http://127.0.0.1:4444" check:"url" help:"URL of the server"`
	// Connect is where watch connects as a viewer: moq for native QUIC, https for
	// WebTransport, ws or wss for WebSocket. A server on loopback is asked for its
	// development certificate.
	Connect string `group:"client" default:"moq://127.0.0.1:4443" check:"viewer" help:"URL of the server's data listener"`
	// Key is the key that the client commands send: the server's admin_key. A
	// flag can be seen by other users of the machine: the environment or the file
	// is better.
	Key string `default:"" check:"key" secret:"yes" help:"key of the server's REST API"`

	sources map[string]string // by field name; a field that is not there has its default
}

// Default returns the defaults, which are valid.
func Default() Config {
	var c Config
	for _, f := range fields {
		if err := f.set(&c, f.Default); err != nil {
			panic("config: a default cannot be read")
		}
	}
	return c
}

// Source says where a field's value is from, for messages: name is its spelling
// in the file.
func (c *Config) Source(name string) string {
	if s, ok := c.sources[name]; ok {
		return s
	}
	return "default"
}

// String returns every setting as name=value, secrets as ***.
func (c Config) String() string {
	var b strings.Builder
	for i, f := range fields {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%q", f.Name, f.shown(&c))
	}
	return b.String()
}

// GoString hides secrets from %#v as well.
func (c Config) GoString() string { return "config.Config{" + c.String() + "}" }

// LogValue hides secrets from logs.
func (c Config) LogValue() slog.Value {
	attrs := make([]slog.Attr, 0, len(fields))
	for _, f := range fields {
		attrs = append(attrs, slog.String(f.Name, f.shown(&c)))
	}
	return slog.GroupValue(attrs...)
}
