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
