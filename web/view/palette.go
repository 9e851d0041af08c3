package view

// PaletteEntry is one entry of the command palette.
type PaletteEntry struct {
	Kind  string `json:"kind"` // what the entry is, for example "Group"
	Text  string `json:"text"`
	Label string `json:"label,omitempty"` // shown beside the text
	Link  string `json:"link"`
	Key   string `json:"key,omitempty"` // the keyboard shortcut for the same action
}
