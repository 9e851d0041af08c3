package deadletter

// Colour is the colour of a label. Pages have a light and a dark shade of each.
type Colour string

// Colours lists all colours.
var Colours = []Colour{"red", "amber", "green", "teal", "blue", "grey"}
