package lite

// Version is a version of moq-lite that this package speaks.
type Version uint8

// versions is the table of all versions, newest first: one row each, with the
// name on the wire and what sets it apart. Code asks a predicate, never a name.
var versions = []struct {
	version Version
	name    string
	setup   bool // a Setup stream in each direction
}{
	{Version05, "moq-lite-05", true},
}

// Versions. The zero Version is none.
const (
	Version05 Version = 5
)

// ParseVersion returns the version with the given name on the wire.
func ParseVersion(name string) (Version, bool) {
	for _, row := range versions {
		if row.name == name {
			return row.version, true
		}
	}
	return 0, false
}

// VersionNames returns the names on the wire, most wanted first.
func VersionNames() []string {
	names := make([]string, 0, len(versions))
	for _, row := range versions {
		names = append(names, row.name)
	}
	return names
}

// String returns the name on the wire.
func (v Version) String() string {
	for _, row := range versions {
		if row.version == v {
			return row.name
		}
	}
	return "none"
}

// HasSetup says whether both sides open with a Setup stream.
func (v Version) HasSetup() bool {
	for _, row := range versions {
		if row.version == v {
			return row.setup
		}
	}
	return false
}
