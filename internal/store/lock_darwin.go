package store

// ofdSetLock is F_OFD_SETLK in bsd/sys/fcntl.h of XNU.
const ofdSetLock = 90
