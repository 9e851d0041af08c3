package view

// PaletteEntry is one entry that the palette offers.
type PaletteEntry struct {
	Kind  string `json:"kind"` // what it is: "Group"
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // shown beside the text
	Link  string `json:"link"`
	Key   string `json:"key,omitempty"` // shortcut for the same action
}
