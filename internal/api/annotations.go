package api

// Failure is what a consumer said of the latest death of a letter.
type Failure struct {
	By      string `json:"by"` // annotation
	Type    string `json:"type"`
	Message string `json:"message"`
	Stack   string `json:"stack"`
	Service string `json:"service"`
	Version string `json:"version"`
}

type Annotated struct {
	New    int `json:"new"`
	Again  int `json:"again"`
	Joined int `json:"joined"`
}
