package view

// PaletteEntry is something that the palette offers.
type PaletteEntry struct {
	Kind  string `json:"kind"` // what it is: "Group"
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // what is said beside it
	Link  string `json:"link"`
	Key   string `json:"key,omitempty"` // the keys that do the same
}
