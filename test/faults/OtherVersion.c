/*===- OtherVersion.c - A runtime of another version --------------------------===*/

const char *weir_version(void);
const char *weir_version(void) { return "0.0.7"; }
