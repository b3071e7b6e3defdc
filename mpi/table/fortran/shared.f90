  ! The size of a variable: of any rank, but the library is not told which.
  interface MPI_Sizeof
    subroutine MPI_Sizeof_integer1(x, size, ierror)
      integer(1), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_integer2(x, size, ierror)
      integer(2), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_integer4(x, size, ierror)
      integer(4), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_integer8(x, size, ierror)
      integer(8), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_logical1(x, size, ierror)
      logical(1), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_logical2(x, size, ierror)
      logical(2), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_logical4(x, size, ierror)
      logical(4), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_logical8(x, size, ierror)
      logical(8), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_real4(x, size, ierror)
      real(4), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_real8(x, size, ierror)
      real(8), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_real16(x, size, ierror)
      real(16), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_complex4(x, size, ierror)
      complex(4), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_complex8(x, size, ierror)
      complex(8), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_complex16(x, size, ierror)
      complex(16), dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
    subroutine MPI_Sizeof_character(x, size, ierror)
      character, dimension(..), intent(in) :: x
      integer, intent(out) :: size
      integer, optional, intent(out) :: ierror
    end subroutine
  end interface
  ! Keeps a compiler from moving accesses to a buffer over the call.
  interface MPI_F_sync_reg
    subroutine MPI_F_sync_reg(buf)
!GCC$ ATTRIBUTES NO_ARG_CHECK :: buf
!DIR$ IGNORE_TKR buf
      type(*), dimension(*), target :: buf
    end subroutine
  end interface
