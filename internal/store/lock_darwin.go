package store

// ofdSetLock is the value of F_OFD_SETLK in bsd/sys/fcntl.h of XNU.
const ofdSetLock = 90
