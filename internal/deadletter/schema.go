package deadletter

import "time"

// SchemaVersion is one version of a descriptor set.
type SchemaVersion struct {
	Name      string
	Version   string // SHA-256 of the content, 64 hex digits
	Source    SchemaSource
	Detail    string // the file, or the address of the server
	By        string
	At        time.Time // when it was first received
	CurrentAt time.Time // when it last became the newest of its set
	RemovedAt time.Time // zero = in use
	Content   []byte    // a serialised google.protobuf.FileDescriptorSet
}

// SchemaSource says how dlo received a descriptor set.
type SchemaSource string

const (
	SchemaUpload     SchemaSource = "upload"
	SchemaDirectory  SchemaSource = "directory"
	SchemaReflection SchemaSource = "reflection"
)

// SchemaEffect is the effect of a change to a descriptor set.
type SchemaEffect struct {
	Types    int // types in the set
	Files    int
	Letters  int // letters with a type that this set reads differently
	Sampled  int // number of letters that were tested; these are the newest that no schema reads now
	Readable int // number of the tested letters that the set would read
}

// SchemaStatus is the state of loading descriptor sets.
type SchemaStatus struct {
	Directory string   // watched directory; "" = none
	Problems  []string // what cannot be read, and why; each entry names its file or server
	Servers   []SchemaServer
}

// SchemaServer is a gRPC server that dlo asks for types.
type SchemaServer struct {
	Address string
	At      time.Time // last request; zero = none yet
	Problem string    // reason why it gave no answer; "" = it gave one
}
