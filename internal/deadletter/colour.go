package deadletter

// Colour is what a label is painted in. Pages have each in a light and a dark shade.
type Colour string

// Colours lists all colours.
var Colours = []Colour{"red", "amber", "green", "teal", "blue", "grey"}
