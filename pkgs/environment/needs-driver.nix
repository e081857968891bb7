# Packages whose import needs the GPU driver's libraries, with what asks for them.
{
}
