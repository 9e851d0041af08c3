package deadletter

import "time"

// SchemaVersion is one version of a descriptor set.
type SchemaVersion struct {
	Name      string
	Version   string // SHA-256 of the content, 64 hex digits
	Source    SchemaSource
	Detail    string // the file, or the address of the server
	By        string
	At        time.Time // when it first came
	CurrentAt time.Time // when it became the newest of its set last
	RemovedAt time.Time // zero = in use
	Content   []byte    // a serialised google.protobuf.FileDescriptorSet
}

// SchemaSource is how a descriptor set came to dlo.
type SchemaSource string

const (
	SchemaUpload     SchemaSource = "upload"
	SchemaDirectory  SchemaSource = "directory"
	SchemaReflection SchemaSource = "reflection"
)

// SchemaEffect is what a change of a descriptor set reaches.
type SchemaEffect struct {
	Types    int // of the set
	Files    int
	Letters  int // that have a type which is read differently by it
	Sampled  int // newest letters that no schema reads now, as far as they were tried,
	Readable int // and how many of them would be read
}

// SchemaStatus is how descriptor sets come in.
type SchemaStatus struct {
	Directory string   // that is watched, "" = none
	Problems  []string // what cannot be read, and why; each names its file or server
	Servers   []SchemaServer
}

// SchemaServer is a gRPC server that is asked for its types.
type SchemaServer struct {
	Address string
	At      time.Time // when it was asked last, zero = not yet
	Problem string    // why it gave no answer; "" = it did
}
