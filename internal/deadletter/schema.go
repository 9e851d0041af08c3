package deadletter

import "time"

// SchemaVersion is one version of a descriptor set.
type SchemaVersion struct {
	Name      string       `json:"name"`
	Version   string       `json:"version"` // SHA-256 of the content, as 64 hex digits
	Source    SchemaSource `json:"source"`
	Detail    string       `json:"detail"` // name of the file, or address of the server
	By        string       `json:"by"`
	At        time.Time    `json:"at,omitzero"`         // time at which the version was first received
	CurrentAt time.Time    `json:"current_at,omitzero"` // time at which the version last became the newest of its set
	RemovedAt time.Time    `json:"removed_at,omitzero"` // zero = in use
	Content   []byte       `json:"-"`                   // serialised google.protobuf.FileDescriptorSet
}

// SchemaSource says where dlo got a descriptor set.
type SchemaSource string

const (
	SchemaUpload     SchemaSource = "upload"
	SchemaDirectory  SchemaSource = "directory"
	SchemaReflection SchemaSource = "reflection"
)

// SchemaEffect describes the effect that a new version or the removal of a descriptor set has on
// the stored letters.
type SchemaEffect struct {
	Types   int `json:"type_count"` // number of types in the set
	Files   int `json:"files"`
	Letters int `json:"letters"` // number of letters whose type the set decodes differently
	// number of letters that were tested; they are the newest letters that no schema can read now
	Sampled  int `json:"sampled"`
	Readable int `json:"readable"` // number of tested letters that the set could read
}

// SchemaStatus says where dlo loads descriptor sets from, and what does not work.
type SchemaStatus struct {
	Directory string   // directory that dlo watches; "" = none
	Problems  []string // what cannot be read and why; each entry names the file or the server
	Servers   []SchemaServer
}

// SchemaServer is a gRPC server from which dlo gets types.
type SchemaServer struct {
	Address string    `json:"address"`
	At      time.Time `json:"asked_at,omitzero"` // time of the last request; zero = there was none yet
	Problem string    `json:"problem"`           // reason why the server gave no answer; "" = it answered
}
